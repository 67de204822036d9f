// SPDX-License-Identifier: Apache-2.0
#include <zip.h>

#include <memory>
#include <utility>
#include <vector>

#include "evidence/read/array_formats.h"
#include "model/errors.h"

namespace gradcheck {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw InfrastructureError(why); }

struct CloseArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseMember {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};
using Archive = std::unique_ptr<zip_t, CloseArchive>;
using Buffers = std::vector<std::unique_ptr<std::byte[]>>;

Archive opened(const std::string& path) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code));
  if (archive != nullptr) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string why = zip_error_strerror(&error);
  zip_error_fini(&error);
  refuse("not a readable .npz: " + why);
}

zip_stat_t stat_of(zip_t* archive, zip_uint64_t index) {
  zip_stat_t stat;
  const bool known = zip_stat_index(archive, index, 0, &stat) == 0 &&
                     (stat.valid & ZIP_STAT_SIZE) != 0 && (stat.valid & ZIP_STAT_NAME) != 0;
  if (!known) refuse("member " + std::to_string(index) + ": its entry is damaged");
  return stat;
}

// Reads what the entry promises and one byte more, so that the checksum is looked at and a member
// that goes on is found out.
void read_member(zip_t* archive, const zip_stat_t& stat, std::byte* to) {
  const std::string name = stat.name;
  const std::unique_ptr<zip_file_t, CloseMember> member(zip_fopen_index(archive, stat.index, 0));
  if (member == nullptr) refuse("member '" + name + "': " + zip_strerror(archive));
  std::uint64_t done = 0;
  while (done < stat.size) {
    const zip_int64_t read = zip_fread(member.get(), to + done, stat.size - done);
    if (read <= 0) refuse("member '" + name + "': damaged at its byte " + std::to_string(done));
    done += static_cast<std::uint64_t>(read);
  }
  std::byte more{};
  if (zip_fread(member.get(), &more, 1) != 0) refuse("member '" + name + "': its data are damaged");
}

std::string array_name(std::string name) {
  if (!name.ends_with(".npy")) refuse("member '" + name + "' is no array");
  name.resize(name.size() - 4);
  return name;
}

void add_member(zip_t* archive, zip_uint64_t index, Buffers& buffers, ArrayFile& file) {
  const zip_stat_t stat = stat_of(archive, index);
  const std::string name = array_name(stat.name);
  buffers.push_back(std::make_unique_for_overwrite<std::byte[]>(stat.size));
  read_member(archive, stat, buffers.back().get());
  try {
    const bool is_new =
        file.arrays.emplace(name, parse_npy({buffers.back().get(), stat.size})).second;
    if (!is_new) refuse("occurs twice");
  } catch (const InfrastructureError& error) {
    refuse("member '" + name + "': " + error.what());
  }
}

}  // namespace

ArrayFile open_npz(const std::string& path, std::uint64_t most_bytes) {
  const Archive archive = opened(path);
  const auto members = static_cast<zip_uint64_t>(zip_get_num_entries(archive.get(), 0));
  std::uint64_t total = 0;
  for (zip_uint64_t i = 0; i < members; ++i) {
    const std::uint64_t size = stat_of(archive.get(), i).size;
    if (size > most_bytes || (total += size) > most_bytes) {
      refuse("it unpacks to more than " + std::to_string(most_bytes >> 30) +
             " GiB, which stay in memory; save safetensors, which are mapped");
    }
  }
  auto buffers = std::make_shared<Buffers>();
  ArrayFile file;
  for (zip_uint64_t i = 0; i < members; ++i) add_member(archive.get(), i, *buffers, file);
  file.storage = std::move(buffers);
  return file;
}

}  // namespace gradcheck
