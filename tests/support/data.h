// Real data for tests. Where the default directory is absent a test skips and says so; where WEFT_DATA_DIR was set, or
// under CI, missing data fails.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace weft::tests {

inline std::string dataDirectory() {
  return WEFT_DATA_DIR;
}

inline bool dataExists(const std::string& file) {
  return std::filesystem::exists(dataDirectory() + "/" + file);
}

inline bool dataRequired() {
  return WEFT_DATA_REQUIRED || std::getenv("CI") != nullptr;
}

}  // namespace weft::tests

// Skips where the default directory lacks the file: the data is not part of the project, and a user need not have it.
// Where it should be there (dataRequired) its absence fails.
#define WEFT_REQUIRE_DATA(file)                                                                 \
  if (!weft::tests::dataExists(file)) {                                                         \
    if (weft::tests::dataRequired()) {                                                          \
      FAIL() << weft::tests::dataDirectory() << "/" << (file) << " is missing";                 \
    }                                                                                           \
    GTEST_SKIP() << weft::tests::dataDirectory() << "/" << (file) << " is not on this machine"; \
  }                                                                                             \
  static_assert(true)
