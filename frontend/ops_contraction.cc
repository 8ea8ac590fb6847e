// Products: matmul with numpy's broadcasting, and einsum of any number of operands, by products of two tensors.
#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/ops_support.h"
#include "ir/nn/contract_spec.h"
#include "weft/ops.h"

namespace weft {

using mlir::NamedAttrList;

namespace {

Tensor contract(const char* function, const Tensor& a, const Tensor& b, const std::string& spec, SourceLine at) {
  Call call(at, function, {{"a", a, Takes::kFloats}, {"b", b, Takes::kFloats}});
  if (!call.ok()) {
    return call.undefined();
  }
  NamedAttrList attrs;
  attrs.set("spec", call.builder().getStringAttr(spec));
  return call.make("contract", attrs);
}

Tensor reshapedTo(const Tensor& x, const Shape& shape, SourceLine at) {
  return !x.valid() || x.shape() == shape ? x : reshape(x, shape, at);
}

// A product whose batch dimensions broadcast. A dimension of size 1 has no letter: then no operand is stretched.
class BroadcastProduct {
 public:
  BroadcastProduct(Call& call, const Tensor& a, const Tensor& b, MatmulOptions options, SourceLine at)
      : call_(call), a_(a), b_(b), options_(options), at_(at) {}

  Tensor run() {
    const int64_t k = a_.dim(options_.transposeA ? -2 : -1);
    const int64_t kOfB = b_.dim(options_.transposeB ? -1 : -2);
    if (k != kOfB) {
      return call_.fail(absl::StrCat("k is ", k, " in a, which is ", describe(a_),
                                     options_.transposeA ? " transposed" : "", ", and ", kOfB, " in b, which is ",
                                     describe(b_), options_.transposeB ? " transposed" : "", "; they must agree"));
    }
    if (!readBatch()) {
      return call_.undefined();
    }
    const int64_t m = a_.dim(options_.transposeA ? -1 : -2);
    const int64_t n = b_.dim(options_.transposeB ? -2 : -1);
    finish(spec_.a, aShape_, a_, options_.transposeA ? std::pair("k", "m") : std::pair("m", "k"));
    finish(spec_.b, bShape_, b_, options_.transposeB ? std::pair("n", "k") : std::pair("k", "n"));
    spec_.result.insert(spec_.result.end(), {"m", "n"});
    yShape_.insert(yShape_.end(), {m, n});
    const Tensor y = contract("matmul", reshapedTo(a_, aShape_, at_), reshapedTo(b_, bShape_, at_), spec_.print(), at_);
    return reshapedTo(y, yShape_, at_);
  }

 private:
  // Size of the batch dimension that is `place` places before the matrix; 1 where there is none.
  static int64_t batchOf(const Tensor& x, int64_t place) {
    return place + 2 < static_cast<int64_t>(x.shape().size()) ? x.dim(-3 - place) : 1;
  }

  // A letter for each batch dimension of the result, in those that have it.
  bool readBatch() {
    const auto rank = static_cast<int64_t>(std::max(a_.shape().size(), b_.shape().size())) - 2;
    for (int64_t place = rank - 1; place >= 0; --place) {
      const int64_t ofA = batchOf(a_, place);
      const int64_t ofB = batchOf(b_, place);
      if (ofA != ofB && ofA != 1 && ofB != 1) {
        call_.fail(absl::StrCat("batch dimensions do not broadcast: a is ", describe(a_), " and b is ", describe(b_),
                                ", with sizes ", ofA, " and ", ofB, " in a dimension, aligned at the right"));
        return false;
      }
      const std::string letter = absl::StrCat("b", rank - 1 - place);
      yShape_.push_back(std::max(ofA, ofB));
      add(letter, ofA, spec_.a, aShape_);
      add(letter, ofB, spec_.b, bShape_);
      if (yShape_.back() > 1) {
        spec_.result.push_back(letter);
      }
    }
    return true;
  }

  static void add(const std::string& letter, int64_t size, std::vector<std::string>& letters, Shape& shape) {
    if (size > 1) {
      letters.push_back(letter);
      shape.push_back(size);
    }
  }

  static void finish(std::vector<std::string>& letters, Shape& shape, const Tensor& x,
                     std::pair<const char*, const char*> matrix) {
    letters.insert(letters.end(), {matrix.first, matrix.second});
    shape.insert(shape.end(), {x.dim(-2), x.dim(-1)});
  }

  Call& call_;
  const Tensor& a_;
  const Tensor& b_;
  MatmulOptions options_;
  SourceLine at_;
  ir::ContractSpec spec_;
  Shape aShape_, bShape_, yShape_;
};

// --- einsum ---

// A tensor and the letters of its dimensions.
struct Term {
  Tensor tensor;
  std::string letters;
};

bool has(const std::string& letters, char letter) {
  return letters.find(letter) != std::string::npos;
}

std::string unionOf(const std::string& a, const std::string& b) {
  std::string all = a;
  std::copy_if(b.begin(), b.end(), std::back_inserter(all), [&](char letter) { return !has(a, letter); });
  return all;
}

// Of the product of a and b, what others need: letters of both, of a, of b.
std::string keptOf(const std::string& a, const std::string& b, const std::string& needed) {
  std::string both;
  std::string alone;
  for (const char letter : unionOf(a, b)) {
    if (has(needed, letter)) {
      (has(a, letter) && has(b, letter) ? both : alone) += letter;
    }
  }
  return both + alone;
}

using Sizes = std::map<char, int64_t>;
// Of each product the places of its operands among the terms that are left; its result is appended to them.
using Order = std::vector<std::pair<size_t, size_t>>;

// In which order terms are multiplied: the one of least arithmetic of all, where there are few.
class ProductOrder {
 public:
  ProductOrder(const Sizes& sizes, std::string result) : sizes_(sizes), result_(std::move(result)) {}

  Order of(std::vector<std::string> terms) {
    Order order;
    while (terms.size() > kFew) {
      std::pair<size_t, size_t> cheapest;
      double least = std::numeric_limits<double>::infinity();
      forEachPair(terms, [&](size_t i, size_t j) {
        const double cost = costOf(terms[i], terms[j]);
        if (cost < least) {
          least = cost;
          cheapest = {i, j};
        }
      });
      order.push_back(cheapest);
      terms = multiplied(terms, cheapest.first, cheapest.second);
    }
    best_.reset();
    search(terms, 0, {});
    order.insert(order.end(), best_->second.begin(), best_->second.end());
    return order;
  }

  // The letters of the product of terms i and j that the result or another term needs.
  std::string kept(const std::vector<std::string>& terms, size_t i, size_t j) const {
    std::string needed = result_;
    for (size_t t = 0; t < terms.size(); ++t) {
      needed += t == i || t == j ? "" : terms[t];
    }
    return keptOf(terms[i], terms[j], needed);
  }

 private:
  static constexpr size_t kFew = 6;  // 2700 orders

  template <typename Visit>
  static void forEachPair(const std::vector<std::string>& terms, const Visit& visit) {
    for (size_t i = 0; i < terms.size(); ++i) {
      for (size_t j = i + 1; j < terms.size(); ++j) {
        visit(i, j);
      }
    }
  }

  // A multiplication for each point of all letters.
  double costOf(const std::string& a, const std::string& b) const {
    double cost = 1;
    for (const char letter : unionOf(a, b)) {
      cost *= static_cast<double>(sizes_.at(letter));
    }
    return cost;
  }

  std::vector<std::string> multiplied(std::vector<std::string> terms, size_t i, size_t j) const {
    const std::string product = kept(terms, i, j);
    terms.erase(terms.begin() + static_cast<int64_t>(j));
    terms.erase(terms.begin() + static_cast<int64_t>(i));
    terms.push_back(product);
    return terms;
  }

  void search(const std::vector<std::string>& terms, double cost, const Order& order) {
    if (best_ && cost >= best_->first) {
      return;
    }
    if (terms.size() <= 1) {
      best_ = {cost, order};
      return;
    }
    forEachPair(terms, [&](size_t i, size_t j) {
      Order longer = order;
      longer.emplace_back(i, j);
      search(multiplied(terms, i, j), cost + costOf(terms[i], terms[j]), longer);
    });
  }

  const Sizes& sizes_;
  std::string result_;
  std::optional<std::pair<double, Order>> best_;
};

class Einsum {
 public:
  Einsum(Call& call, const std::string& spec, SourceLine at) : call_(call), spec_(spec), at_(at) {}

  Tensor run(const std::vector<Tensor>& operands) {
    if (!parse(operands)) {
      return call_.undefined();
    }
    for (Term& term : terms_) {
      term = onDiagonal(term);
    }
    for (size_t t = 0; t < terms_.size(); ++t) {
      terms_[t] = summed(t);
    }
    ProductOrder products(sizes_, result_);
    for (const auto& [i, j] : products.of(letters())) {
      const bool last = terms_.size() == 2;
      const Term product = multiply(terms_[i], terms_[j], last ? result_ : products.kept(letters(), i, j));
      terms_.erase(terms_.begin() + static_cast<int64_t>(j));
      terms_.erase(terms_.begin() + static_cast<int64_t>(i));
      terms_.push_back(product);
    }
    return ordered(terms_[0], result_);
  }

 private:
  Tensor fail(const std::string& text) { return call_.fail(absl::StrCat("specification \"", spec_, "\"", text)); }

  std::vector<std::string> letters() const {
    std::vector<std::string> all;
    for (const Term& term : terms_) {
      all.push_back(term.letters);
    }
    return all;
  }

  // Terms, the letters of the result, and the size of each letter.
  bool parse(const std::vector<Tensor>& operands) {
    std::string text;
    std::copy_if(spec_.begin(), spec_.end(), std::back_inserter(text), [](char c) { return c != ' '; });
    const size_t arrow = text.find("->");
    if (arrow == std::string::npos) {
      fail(" has no \"->\"; write the letters of the result behind it, \"ij,jk->ik\"");
      return false;
    }
    result_ = text.substr(arrow + 2);
    std::vector<std::string> lists(1);
    for (const char c : text.substr(0, arrow)) {
      c == ',' ? lists.emplace_back() : lists.back() += c;
    }
    for (const char c : absl::StrCat(absl::StrJoin(lists, ""), result_)) {
      if (std::isalpha(static_cast<unsigned char>(c)) == 0) {
        fail(absl::StrCat(" has '", std::string(1, c), "'; a dimension is one letter, as in \"ij,jk->ik\""));
        return false;
      }
    }
    if (lists.size() != operands.size()) {
      fail(
          absl::StrCat(" is for ", lists.size(), " operands, ", operands.size(), " are given; write letters for each"));
      return false;
    }
    for (size_t i = 0; i < operands.size(); ++i) {
      terms_.push_back({operands[i], lists[i]});
    }
    return readSizes() && checkResult();
  }

  bool readSizes() {
    std::map<char, const Term*> first;
    for (const Term& term : terms_) {
      const Shape shape = term.tensor.shape();
      if (term.letters.size() != shape.size()) {
        fail(absl::StrCat(" gives ", term.letters.size(), " letters to ", describe(term.tensor),
                          "; write one for each ", "dimension"));
        return false;
      }
      for (size_t d = 0; d < shape.size(); ++d) {
        const char letter = term.letters[d];
        const int64_t known = sizes_.emplace(letter, shape[d]).first->second;
        const Term* before = first.emplace(letter, &term).first->second;
        if (known != shape[d]) {
          fail(absl::StrCat(": letter '", std::string(1, letter), "' is ", known, " in ", describe(before->tensor),
                            " and ", shape[d], " in ", describe(term.tensor), "; a letter has one size"));
          return false;
        }
      }
    }
    return true;
  }

  bool checkResult() {
    for (const char letter : result_) {
      if (sizes_.count(letter) == 0 || std::count(result_.begin(), result_.end(), letter) > 1) {
        fail(absl::StrCat(": letter '", std::string(1, letter), "' of the result ",
                          sizes_.count(letter) == 0 ? "stands in no operand" : "stands there twice",
                          "; write letters of operands, each once"));
        return false;
      }
    }
    return true;
  }

  // Of a letter that stands twice the elements with both indices equal: all others are 0 in a sum over one of them.
  Term onDiagonal(Term term) {
    for (size_t i = 0; i < term.letters.size(); ++i) {
      for (size_t j = term.letters.rfind(term.letters[i]); j > i; j = term.letters.rfind(term.letters[i])) {
        const int64_t size = sizes_.at(term.letters[i]);
        Shape rows(term.letters.size(), 1);
        Shape columns = rows;
        rows[i] = size;
        columns[j] = size;
        const Tensor isEqual = compare(iotaOf(call_, rows, static_cast<int64_t>(i), kI64, at_),
                                       iotaOf(call_, columns, static_cast<int64_t>(j), kI64, at_), "eq", at_);
        term.tensor = sum(select(isEqual, term.tensor, 0, at_), {static_cast<int64_t>(j)}, false, at_);
        term.letters.erase(j, 1);
      }
    }
    return term;
  }

  // Summed over the letters that stand nowhere else.
  Term summed(size_t place) {
    Term term = terms_[place];
    std::string needed = result_;
    for (size_t t = 0; t < terms_.size(); ++t) {
      needed += t == place ? "" : terms_[t].letters;
    }
    Shape dims;
    std::string kept;
    for (size_t d = 0; d < term.letters.size(); ++d) {
      if (has(needed, term.letters[d])) {
        kept += term.letters[d];
      } else {
        dims.push_back(static_cast<int64_t>(d));
      }
    }
    return dims.empty() ? term : Term{sum(term.tensor, dims, false, at_), kept};
  }

  // The product with the letters `kept`. What sums over nothing is element-wise.
  Term multiply(const Term& a, const Term& b, const std::string& kept) {
    if (unionOf(a.letters, b.letters).size() == kept.size()) {
      return {mul(aligned(a, kept), aligned(b, kept), at_), kept};
    }
    const auto words = [](const std::string& letters) {
      std::vector<std::string> list;
      for (const char letter : letters) {
        list.emplace_back(1, letter);
      }
      return list;
    };
    const ir::ContractSpec spec = {words(a.letters), words(b.letters), words(kept)};
    return {contract("einsum", a.tensor, b.tensor, spec.print(), at_), kept};
  }

  // With a dimension for each of `letters`, of size 1 where the term has none.
  Tensor aligned(const Term& term, const std::string& letters) {
    std::string own;
    Shape shape;
    for (const char letter : letters) {
      own += has(term.letters, letter) ? std::string(1, letter) : "";
      shape.push_back(has(term.letters, letter) ? sizes_.at(letter) : 1);
    }
    return reshapedTo(ordered(term, own), shape, at_);
  }

  Tensor ordered(const Term& term, const std::string& letters) {
    Shape order;
    for (const char letter : letters) {
      order.push_back(static_cast<int64_t>(term.letters.find(letter)));
    }
    return letters == term.letters ? term.tensor : transpose(term.tensor, order, at_);
  }

  Call& call_;
  const std::string& spec_;
  SourceLine at_;
  std::vector<Term> terms_;
  std::string result_;
  Sizes sizes_;
};

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, MatmulOptions options, SourceLine at) {
  Call call(at, "matmul", {{"a", a, Takes::kFloats}, {"b", b, Takes::kFloats}});
  if (!call.ok()) {
    return call.undefined();
  }
  const size_t ofA = a.shape().size();
  const size_t ofB = b.shape().size();
  if (ofA == 0 || ofB == 0) {
    return call.fail(absl::StrCat("a is ", describe(a), " and b is ", describe(b),
                                  "; each needs a dimension, scalars are multiplied by *"));
  }
  if (ofA == 1 || ofB == 1) {
    // A vector is a row on the left and a column on the right; that dimension goes.
    const Tensor y = matmul(ofA == 1 ? reshape(a, {1, -1}, at) : a, ofB == 1 ? reshape(b, {-1, 1}, at) : b,
                            {ofA > 1 && options.transposeA, ofB > 1 && options.transposeB}, at);
    Shape shape = y.shape();
    if (ofB == 1 && !shape.empty()) {
      shape.pop_back();
    }
    if (ofA == 1 && !shape.empty()) {
      shape.erase(shape.end() - (ofB == 1 ? 1 : 2));
    }
    return reshapedTo(y, shape, at);
  }
  const Shape shapeOfA = a.shape();
  const Shape shapeOfB = b.shape();
  if (ofB > 2 && (ofA != ofB || !std::equal(shapeOfA.begin(), shapeOfA.end() - 2, shapeOfB.begin()))) {
    return BroadcastProduct(call, a, b, options, at).run();
  }
  NamedAttrList attrs;
  attrs.set("transpose_a", call.builder().getBoolAttr(options.transposeA));
  attrs.set("transpose_b", call.builder().getBoolAttr(options.transposeB));
  return call.make("matmul", attrs);
}

Tensor einsum(const std::string& spec, const std::vector<Tensor>& operands, SourceLine at) {
  static constexpr const char* kNames[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
  std::vector<NamedOperand> named;
  for (size_t i = 0; i < operands.size(); ++i) {
    named.push_back({i < std::size(kNames) ? kNames[i] : "of operands", operands[i], Takes::kFloats});
  }
  Call call(at, "einsum", named);
  return call.ok() ? Einsum(call, spec, at).run(operands) : call.undefined();
}

Tensor einsum(const std::string& spec, const Tensor& a, const Tensor& b, SourceLine at) {
  return einsum(spec, std::vector<Tensor>{a, b}, at);
}

}  // namespace weft
