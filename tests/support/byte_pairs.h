// Small vocabularies of byte pairs, as BpeTokenizer reads them.
#pragma once

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/utf8.h"

namespace weft::testing {

// The 256 bytes, in the order of GPT-2's vocabulary, and what each line of `merges` makes, numbered on.
struct BytePairs {
  Json encoder = Json::object();
  std::string merges;

  explicit BytePairs(std::string lines = "") : merges(std::move(lines)) {
    const std::pair<uint32_t, uint32_t> characters[] = {{33, 126}, {161, 172}, {174, 255}, {256, 323}};
    for (const auto& [first, last] : characters) {
      for (uint32_t character = first; character <= last; ++character) {
        std::string name;
        appendUtf8(character, &name);
        add(name);
      }
    }
    std::istringstream pairs(merges);
    for (std::string left, right; pairs >> left >> right;) {
      if (left != "#version:") {
        add(left + right);
      }
    }
  }

  void add(const std::string& name) { encoder[name] = encoder.size(); }
};

}  // namespace weft::testing
