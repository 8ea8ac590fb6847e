// UTF-8, one code point at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

// How many bytes the code point at `at` has, which is a place in the text; 0 where they are none of UTF-8: cut short,
// overlong, a surrogate, too large.
size_t codePointAt(std::string_view text, size_t at, uint32_t* codePoint);
void appendUtf8(uint32_t codePoint, std::string* text);

}  // namespace weft
