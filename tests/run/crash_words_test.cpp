// SPDX-License-Identifier: Apache-2.0
#include "run/crash_words.h"

#include <gtest/gtest.h>

namespace gradcheck {
namespace {

TEST(CrashWords, AnAbortIsACrash) {
  EXPECT_TRUE(names_a_crash("  exitcode  : -6 (pid: 688)\n  traceback : Signal 6 (SIGABRT)"));
  EXPECT_TRUE(names_a_crash("process 1 terminated with signal SIGSEGV"));
  EXPECT_TRUE(names_a_crash("exits with return code = -11"));
}

TEST(CrashWords, AStatusOfItsOwnIsNone) {
  EXPECT_FALSE(names_a_crash("failed (exitcode: 3) local_rank: 0 (pid: 687)"));
  EXPECT_FALSE(names_a_crash(""));
}

// torchrun ends the other ranks once one has refused: 0 of 2 came out as excused now and then.
TEST(CrashWords, ARankThatItsLauncherTerminatedExcusesNobody) {
  EXPECT_FALSE(
      names_a_crash("[1]:\n  exitcode  : -15 (pid: 688)\n[0]:\n  exitcode  : 3 (pid: 687)"));
  EXPECT_FALSE(names_a_crash("  exitcode  : -15 (pid: 688)"));
  EXPECT_FALSE(names_a_crash("exitcode: 3 … Signal 15 (SIGTERM), exitcode: -6"));
}

}  // namespace
}  // namespace gradcheck
