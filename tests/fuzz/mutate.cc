#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <cctype>
#include <limits>

namespace weft::fuzz {
namespace {

// Parts that are copied or removed at once.
constexpr size_t kLongestPart = 64;

struct Span {
  size_t begin = 0;
  size_t size = 0;
};

// The longest run of characters for which `belongs` holds, that begins at or after `at`; empty: there is none.
template <typename F>
Span runFrom(const std::string& text, size_t at, F belongs) {
  while (at < text.size() && !belongs(text[at])) {
    ++at;
  }
  size_t end = at;
  while (end < text.size() && belongs(text[end])) {
    ++end;
  }
  return {at, end - at};
}

bool isDigit(char c) {
  return c >= '0' && c <= '9';
}

bool isWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '%' || c == '@';
}

Span anySpan(const std::string& text, Mutator& mutator) {
  const size_t begin = mutator.below(text.size());
  return {begin, 1 + mutator.below(std::min(kLongestPart, text.size() - begin))};
}

std::string withNumber(std::string text, Mutator& mutator) {
  const Span span = runFrom(text, mutator.below(text.size()), isDigit);
  if (span.size == 0) {
    return text;
  }
  // Longer ones than an int64 are legal text, too.
  const int64_t now = std::atoll(text.substr(span.begin, std::min<size_t>(span.size, 18)).c_str());
  const std::string number = mutator.chance(5) ? std::string(30, '9') : std::to_string(mutator.edge(now));
  return text.replace(span.begin, span.size, number);
}

std::string withWord(std::string text, const std::vector<std::string>& words, Mutator& mutator) {
  const Span span = runFrom(text, mutator.below(text.size()), isWord);
  const Span other = runFrom(text, mutator.below(text.size()), isWord);
  const bool known = !words.empty() && mutator.chance(50);
  return text.replace(span.begin, span.size, known ? mutator.oneOf(words) : text.substr(other.begin, other.size));
}

std::string doubled(std::string text, Mutator& mutator) {
  const Span span = anySpan(text, mutator);
  const std::string part = text.substr(span.begin, span.size);
  const size_t to = mutator.chance(50) ? span.begin : mutator.below(text.size() + 1);
  const uint64_t times = mutator.chance(5) ? 1000 : 1 + mutator.below(3);
  for (uint64_t i = 0; i < times; ++i) {
    text.insert(to, part);
  }
  return text;
}

std::string swapped(std::string text, Mutator& mutator) {
  const Span a = anySpan(text, mutator);
  const Span b = anySpan(text, mutator);
  const std::string first = text.substr(a.begin, a.size);
  const std::string second = text.substr(b.begin, b.size);
  text.replace(a.begin, a.size, second);
  return b.begin > text.size() ? text : text.replace(b.begin, std::min(b.size, text.size() - b.begin), first);
}

// Without libFuzzer: a bit, a byte, an insertion, a removal.
std::string rawChange(std::string bytes, Mutator& mutator) {
  if (bytes.empty()) {
    return std::string(1, static_cast<char>(mutator.below(256)));
  }
  const size_t at = mutator.below(bytes.size());
  switch (mutator.below(4)) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << mutator.below(8)));
      return bytes;
    case 1:
      bytes[at] = static_cast<char>(mutator.below(256));
      return bytes;
    case 2:
      return bytes.insert(at, 1 + mutator.below(8), static_cast<char>(mutator.below(256)));
    default:
      return bytes.erase(at, 1 + mutator.below(kLongestPart));
  }
}

}  // namespace

int64_t Mutator::edge(int64_t now) {
  static const std::vector<int64_t> kEdges = {-1,
                                              0,
                                              1,
                                              2,
                                              3,
                                              64,
                                              (int64_t{1} << 31) - 1,
                                              int64_t{1} << 31,
                                              int64_t{1} << 32,
                                              int64_t{1} << 40,
                                              int64_t{1} << 61,
                                              int64_t{1} << 62,
                                              std::numeric_limits<int64_t>::max() - 1,
                                              std::numeric_limits<int64_t>::max(),
                                              std::numeric_limits<int64_t>::min()};
  const uint64_t value = static_cast<uint64_t>(now);
  switch (below(6)) {
    case 0:
      return static_cast<int64_t>(value + 1);
    case 1:
      return static_cast<int64_t>(value - 1);
    case 2:
      return static_cast<int64_t>(value * 2);
    default:
      return oneOf(kEdges);
  }
}

std::string Mutator::raw(const std::string& bytes) {
  return raw_ ? raw_(bytes, *this) : rawChange(bytes, *this);
}

std::string mutateText(const std::string& text, const std::vector<std::string>& words, Mutator& mutator) {
  if (text.empty()) {
    return words.empty() ? mutator.raw(text) : mutator.oneOf(words);
  }
  const uint64_t choice = mutator.below(100);
  if (choice < 25) {
    return withNumber(text, mutator);
  }
  if (choice < 50) {
    return withWord(text, words, mutator);
  }
  if (choice < 60 && !words.empty()) {
    return std::string(text).insert(mutator.below(text.size() + 1), mutator.oneOf(words));
  }
  if (choice < 70) {
    return doubled(text, mutator);
  }
  if (choice < 80) {
    return swapped(text, mutator);
  }
  if (choice < 90) {
    const Span span = anySpan(text, mutator);
    return std::string(text).erase(span.begin, span.size);
  }
  return mutator.raw(text);
}

}  // namespace weft::fuzz
