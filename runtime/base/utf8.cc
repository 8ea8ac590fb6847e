#include "runtime/base/utf8.h"

namespace weft {
namespace {

// Length of the sequence that begins with this byte, 0 if none does.
size_t sequenceLength(uint8_t first) {
  return first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
}

}  // namespace

size_t codePointAt(std::string_view text, size_t at, uint32_t* codePoint) {
  const uint8_t first = static_cast<uint8_t>(text[at]);
  const size_t length = sequenceLength(first);
  if (length == 0 || length > text.size() - at) {
    return 0;
  }
  uint32_t value = length == 1 ? first : first & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) {
    const uint8_t next = static_cast<uint8_t>(text[at + i]);
    if ((next & 0xC0) != 0x80) {
      return 0;
    }
    value = value << 6 | (next & 0x3F);
  }
  *codePoint = value;
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  return overlong || surrogate || value > 0x10FFFF ? 0 : length;
}

void appendUtf8(uint32_t codePoint, std::string* text) {
  if (codePoint < 0x80) {
    text->push_back(static_cast<char>(codePoint));
    return;
  }
  const int length = codePoint < 0x800 ? 2 : codePoint < 0x10000 ? 3 : 4;
  text->push_back(static_cast<char>((0xF00 >> length & 0xFF) | codePoint >> 6 * (length - 1)));
  for (int i = length - 2; i >= 0; --i) {
    text->push_back(static_cast<char>(0x80 | (codePoint >> 6 * i & 0x3F)));
  }
}

}  // namespace weft
