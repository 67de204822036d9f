// SPDX-License-Identifier: Apache-2.0
#include "reports/sink.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "golden.h"
#include "model/errors.h"

namespace gradcheck::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class SinkTest : public testing::Test {
 protected:
  SinkTest() { fs::remove_all(folder_), fs::create_directories(folder_); }
  ~SinkTest() override { fs::remove_all(folder_); }

  static void write(const fs::path& path, const std::string& text) {
    Sink sink = Sink::to_file(path);
    sink.write(text);
    sink.finish();
  }

  static std::string error_of(const fs::path& path) {
    try {
      write(path, "text");
    } catch (const InfrastructureError& error) {
      return error.what();
    }
    return "no error";
  }

  fs::path folder_ =
      fs::path(testing::TempDir()) / ("gradcheck_sink_" + std::to_string(::getpid()));
};

TEST_F(SinkTest, ParentFoldersAreMadeAndNothingElseIsLeft) {
  write(folder_ / "a/b/report.json", "text");
  EXPECT_EQ(read_file(folder_ / "a/b/report.json"), "text");
  EXPECT_FALSE(fs::exists(folder_ / "a/b/report.json.tmp"));
}

TEST_F(SinkTest, APathIsNeverHalfAReport) {
  write(folder_ / "r", "old");
  Sink sink = Sink::to_file(folder_ / "r");
  sink.write("new");
  EXPECT_EQ(read_file(folder_ / "r"), "old");
  sink.finish();
  EXPECT_EQ(read_file(folder_ / "r"), "new");
}

TEST_F(SinkTest, ErrorsNamePathAndReason) {
  EXPECT_THAT(error_of(folder_),
              HasSubstr("cannot write report " + folder_.string() + ": Is a directory; "));
  write(folder_ / "file", "x");
  EXPECT_THAT(error_of(folder_ / "file/report"), HasSubstr("Not a directory"));
  EXPECT_THAT(error_of("/dev/full"), HasSubstr("No space left on device"));
}

TEST_F(SinkTest, DevicesAreWrittenInPlaceAndStay) {
  write("/dev/null", "x");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(SinkTest, ALinkStaysALink) {
  write(folder_ / "target", "old");
  fs::create_symlink("target", folder_ / "link");
  write(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read_file(folder_ / "target"), "new");
}

TEST_F(SinkTest, DescriptorsAreWrittenAtOnce) {
  const fs::path path = folder_ / "out";
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  Sink sink = Sink::to_descriptor(file, "stdout");
  sink.write("text");
  EXPECT_EQ(read_file(path), "text");
  ::close(file);
  EXPECT_THROW(sink.write("more"), InfrastructureError);
}

}  // namespace
}  // namespace gradcheck::test
