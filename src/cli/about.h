// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gradcheck {

// What `gradcheck --help` says before and after the options.

inline constexpr const char* kAbout =
    "gradcheck: do the ranks of a distributed training step agree, and is what they agree on "
    "right?\n"
    "\n"
    "  gradcheck [run] --scenario NAME | --filter G | --tag T | --all run scenarios\n"
    "  gradcheck exec [-n N] [OPTIONS] -- COMMAND…                    check an unmodified job\n"
    "  gradcheck judge DIR                                            judge kept evidence\n"
    "  gradcheck plan DIR                                             what each tensor should be\n"
    "  gradcheck logp --old FILE --new FILE | FILE…                   judge dumped log-probs\n"
    "  gradcheck compare FILE FILE… | DIR                             compare dumped tensors\n"
    "  gradcheck --list | --validate [FILE…]                          look, run nothing\n"
    "  gradcheck report RUN.json [--format F] [--report F=PATH]       show a report again\n"
    "  gradcheck explain CODE|CAUSE                                   what a finding means";

inline constexpr const char* kFooter =
    "Exit codes: 0 all as expected, 1 something failed, 2 usage or scenario error (nothing ran),\n"
    "3 could not judge or could not write a report, 4 everything selected was skipped.";

}  // namespace gradcheck
