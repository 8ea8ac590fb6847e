// Seeds of random tests, chosen by flags: a fixed sample, `--all` for many, `--seed=N` for one, whose module is
// printed.
//
//   SeedRange seeds = {1, 24};
//   int main(int argc, char** argv) { return weft::testing::runSeeded(argc, argv, seeds, 300); }
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace weft::testing {

struct SeedRange {
  uint64_t first = 1;
  uint64_t last = 1;
  bool isOne() const { return first == last; }
};

// Is --all among the arguments?
inline bool wantsAll(int argc, char** argv) {
  bool all = false;
  for (int i = 1; i < argc; ++i) {
    all |= std::string(argv[i]) == "--all";
  }
  return all;
}

// Reads the flags into `seeds`, of which --all makes those up to `most`, and runs all tests of the program.
inline int runSeeded(int argc, char** argv, SeedRange& seeds, uint64_t most) {
  ::testing::InitGoogleTest(&argc, argv);
  seeds.last = wantsAll(argc, argv) ? most : seeds.last;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind("--seed=", 0) == 0) {
      seeds.first = seeds.last = std::stoull(argument.substr(7));
    }
  }
  return RUN_ALL_TESTS();
}

}  // namespace weft::testing
