// Small changes of inputs, reproducible from a seed.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace weft::fuzz {

class Mutator {
 public:
  // A change of bytes without regard to what they mean. libFuzzer brings its own, which knows what comparisons failed.
  using Raw = std::function<std::string(const std::string& bytes, Mutator& mutator)>;

  explicit Mutator(uint64_t seed, Raw raw = nullptr) : random_(seed), raw_(std::move(raw)) {}

  // 0 ... count - 1; 0 where there is nothing to choose from.
  uint64_t below(uint64_t count) { return count == 0 ? 0 : random_() % count; }
  bool chance(unsigned percent) { return below(100) < percent; }
  template <typename T>
  const T& oneOf(const std::vector<T>& values) {
    return values[below(values.size())];
  }

  // A number at which arithmetic and comparisons tend to break, or a neighbor of `now`.
  int64_t edge(int64_t now);
  std::string raw(const std::string& bytes);

 private:
  std::mt19937_64 random_;
  Raw raw_;
};

// One change of a text: a number becomes another, a word another of the text or of `words`, a part is doubled, removed,
// or changes places with another; now and then raw bytes.
std::string mutateText(const std::string& text, const std::vector<std::string>& words, Mutator& mutator);

}  // namespace weft::fuzz
