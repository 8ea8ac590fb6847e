// The rule of a reshape: the common refinement of two shapes.
//
// Both shapes are read from the left. What their leading sizes have in common, their greatest common divisor, is a
// factor of both; the rest of each stays to be read, a dimension at a time. Where the rests have nothing in common (2
// of 4x6 against 3 of 6x4, behind the factor 2) the elements up to the next boundary that both shapes share cannot be
// cut alike, and are whole on both sides.
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/nn/rules.h"

namespace weft::ir::rules {
namespace {

// One of the shapes while it is read: the words of its dimensions, and what is left of the current one.
class Side {
 public:
  Side(const Shape& shape, std::string prefix)
      : shape_(shape), prefix_(std::move(prefix)), words_(shape.size()), rest_(1) {
    next();
  }

  bool done() const { return dim_ >= shape_.size(); }
  int64_t rest() const { return rest_; }
  // The product of all sizes read so far: where the reader stands in row-major order.
  int64_t product() const { return product_; }

  void take(const std::string& factor, int64_t size) {
    words_[dim_].push_back(factor);
    product_ *= size;
    last_ = size;
    rest_ /= size;
    if (rest_ == 1) {
      next();
    }
  }

  // What is left of the current dimension is whole. The size of the factor before it may follow from nothing else.
  void takeWhole() {
    if (!words_[dim_].empty()) {
      absl::StrAppend(&words_[dim_].back(), "=", last_);
    }
    take(absl::StrCat(prefix_, dim_, "!"), rest_);
  }

  std::string text() const {
    return absl::StrJoin(words_, " ", [](std::string* out, const std::vector<std::string>& factors) {
      const std::string joined = absl::StrJoin(factors, " ");
      absl::StrAppend(out, factors.empty() ? "1" : factors.size() == 1 ? joined : absl::StrCat("(", joined, ")"));
    });
  }

 private:
  // On to the next dimension that is not of size 1.
  void next() {
    for (++dim_; !done() && shape_[dim_] == 1; ++dim_) {
    }
    rest_ = done() ? 1 : shape_[dim_];
  }

  const Shape& shape_;
  const std::string prefix_;
  std::vector<std::vector<std::string>> words_;
  size_t dim_ = static_cast<size_t>(-1);  // next() goes to the first
  int64_t rest_;
  int64_t product_ = 1;
  int64_t last_ = 1;  // size of the last factor
};

}  // namespace

std::string reshape(const Shape& from, const Shape& to) {
  Side a(from, "s");
  Side b(to, "r");
  for (int factor = 0; !a.done() && !b.done();) {
    const int64_t common = std::gcd(a.rest(), b.rest());
    if (common > 1) {
      const std::string name = absl::StrCat("f", factor++);
      a.take(name, common);
      b.take(name, common);
      continue;
    }
    do {
      a.product() <= b.product() ? a.takeWhole() : b.takeWhole();
    } while (a.product() != b.product());
  }
  return absl::StrCat(a.text(), " -> ", b.text());
}

}  // namespace weft::ir::rules
