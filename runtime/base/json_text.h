// JSON that others wrote, before it is parsed.
#pragma once

#include <algorithm>
#include <string_view>

namespace weft {

// Arrays and objects within one another, at most. To copy, print or destroy a value takes stack for each level.
inline constexpr int kMaxJsonDepth = 64;

// How deep the text's arrays and objects nest, if it is JSON.
inline int jsonDepth(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inString) {
      i += c == '\\' ? 1 : 0;
      inString = c != '"';
    } else if (c == '"') {
      inString = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace weft
