// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/errors.h"

namespace gradcheck {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string complaint(const std::vector<std::string>& arguments) {
  try {
    parse_command_line(arguments);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(CommandLine, RunIsTheDefaultCommand) {
  const CommandLine bare = parse_command_line({"--scenario", "a", "--scenario", "b"});
  EXPECT_EQ(bare.command, Command::run);
  EXPECT_THAT(bare.selection.names, ElementsAre("a", "b"));
  EXPECT_THAT(parse_command_line({"run", "--scenario", "a"}).selection.names, ElementsAre("a"));
}

TEST(CommandLine, OverridesAreUnsetUnlessGiven) {
  EXPECT_FALSE(parse_command_line({"--all"}).overrides.any());
  const CommandLine line = parse_command_line({"--all", "--seed", "0", "--steps", "3"});
  EXPECT_EQ(line.overrides.seed, std::optional<std::uint64_t>(0));
  EXPECT_EQ(line.overrides.steps, std::optional<std::int64_t>(3));
  EXPECT_EQ(line.overrides.ranks, std::nullopt);
}

TEST(CommandLine, ATimeoutAloneDoesNotChangeTheProgram) {
  EXPECT_FALSE(parse_command_line({"--all", "--timeout", "300"}).overrides.any());
}

TEST(CommandLine, ReportsAreFormatAndPath) {
  const CommandLine line = parse_command_line({"--all", "--report", "json=a=b.json"});
  ASSERT_EQ(line.reports.size(), 1U);
  EXPECT_EQ(line.reports[0].format, "json");
  EXPECT_EQ(line.reports[0].path, "a=b.json");
}

TEST(CommandLine, UnknownWordsSuggestTheNearest) {
  EXPECT_THAT(complaint({"--scenaro", "x"}), HasSubstr("'--scenario'"));
  EXPECT_THAT(complaint({"explan", "GC201"}), HasSubstr("'explain'"));
  EXPECT_THAT(complaint({"--all", "--fail-on", "warnings"}), HasSubstr("'warning'"));
}

TEST(CommandLine, CommandsOfLaterVersionsSayThatTheyAreNotThereYet) {
  EXPECT_THAT(complaint({"selftest"}), HasSubstr("does not have the command 'selftest' yet"));
}

TEST(CommandLine, LogpTakesContainersOrRoles) {
  const CommandLine line =
      parse_command_line({"logp", "a.npz", "b.npz", "--sampling", "top_p=0.9,top_k=20", "--regime",
                          "same_stack", "--dtype", "fp16", "--clip", "0.2", "--lag", "3"});
  EXPECT_EQ(line.command, Command::logp);
  EXPECT_THAT(line.log_prob_files.containers, testing::ElementsAre("a.npz", "b.npz"));
  const LogProbConditions& conditions = line.log_prob_conditions;
  EXPECT_EQ(conditions.top_p, 0.9);
  EXPECT_EQ(conditions.top_k, 20);
  EXPECT_EQ(conditions.regime, Regime::same_stack);
  EXPECT_EQ(conditions.dtype, DType::f16);
  EXPECT_EQ(conditions.clip_epsilon, 0.2);
  EXPECT_EQ(conditions.lag, 3);
  const CommandLine roles = parse_command_line({"logp", "--old", "o", "--old", "p", "--new", "n"});
  EXPECT_THAT(roles.log_prob_files.old_values, testing::ElementsAre("o", "p"));
  EXPECT_TRUE(roles.log_prob_files.containers.empty());
}

TEST(CommandLine, LogpRefusesConditionsThatAreNone) {
  for (const char* word : {"top_p=2", "top_p=", "top_p", "top_k=-1", "top_k=1.5", "x=1", ""}) {
    EXPECT_THAT(complaint({"logp", "a", "--sampling", word}), HasSubstr("--sampling")) << word;
  }
  EXPECT_THAT(complaint({"logp", "a", "--dtype", "int8"}), HasSubstr("fp32, fp16 or bf16"));
  EXPECT_THAT(complaint({"logp", "a", "--clip", "0"}), HasSubstr("--clip"));
}

TEST(CommandLine, WhatFollowsTheDashesIsTheJobs) {
  const CommandLine line = parse_command_line(
      {"exec", "-n", "2", "--every", "7", "--", "python", "t.py", "--ranks", "9", "--", "-v"});
  EXPECT_EQ(line.command, Command::exec);
  EXPECT_EQ(line.job.ranks, 2);
  EXPECT_EQ(line.job.every, 7);
  EXPECT_EQ(line.verbosity, 0);
  EXPECT_THAT(line.job.argv, testing::ElementsAre("python", "t.py", "--ranks", "9", "--", "-v"));
}

TEST(CommandLine, ExecRefusesWhatMakesNoSense) {
  EXPECT_THAT(complaint({"exec", "python", "t.py"}), HasSubstr("write -- before the command"));
  EXPECT_THAT(complaint({"exec", "--"}), HasSubstr("no command behind --"));
  EXPECT_THAT(complaint({"exec", "-n", "0", "--", "true"}), HasSubstr("--ranks"));
  EXPECT_THAT(complaint({"exec", "-n", "1025", "--", "true"}), HasSubstr("--ranks"));
  EXPECT_THAT(complaint({"exec", "--stop-after-steps", "--", "true"}), HasSubstr("--steps"));
  EXPECT_THAT(complaint({"exec", "--evry", "3", "--", "true"}), HasSubstr("'--every'"));
}

TEST(CommandLine, HelpListValidateAndVersionRunNothing) {
  EXPECT_EQ(parse_command_line({"--help"}).command, Command::help);
  EXPECT_THAT(parse_command_line({"--help"}).help_text, HasSubstr("--scenario"));
  EXPECT_EQ(parse_command_line({"--list"}).command, Command::list);
  EXPECT_EQ(parse_command_line({"--validate", "x.json"}).command, Command::validate);
  EXPECT_EQ(parse_command_line({"--version"}).command, Command::version);
}

TEST(CommandLine, FilesBelongToValidateOnly) {
  EXPECT_THAT(complaint({"--all", "x.json"}), HasSubstr("'x.json'"));
}

TEST(CommandLine, VerbosityCounts) {
  EXPECT_EQ(parse_command_line({"--all", "-vv"}).verbosity, 2);
  EXPECT_EQ(parse_command_line({"--all", "--no-color"}).color, "never");
}

}  // namespace
}  // namespace gradcheck
