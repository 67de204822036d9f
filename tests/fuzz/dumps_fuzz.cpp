// SPDX-License-Identifier: Apache-2.0
// libFuzzer: build with -DGRADCHECK_FUZZ=ON and clang, run on tests/fuzz/corpus.
#include "tests/fuzz/interpret_any.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const gradcheck::fuzz::Folder folder;
  gradcheck::fuzz::interpret_any({data, size}, folder.path());
  return 0;
}
