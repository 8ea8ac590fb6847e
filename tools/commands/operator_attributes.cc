#include "tools/commands/operator_attributes.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/base/names.h"
#include "runtime/base/numbers.h"
#include "runtime/base/status.h"

namespace weft::tools {
namespace {

struct KnownAttribute {
  OperatorAttribute example;  // a value of its form, for messages, too
  bool neutral = false;  // no value of it changes what may be split: the example will do where nothing else follows
};

const std::map<std::string, KnownAttribute>& known() {
  using List = std::vector<int64_t>;
  static const std::map<std::string, KnownAttribute> attributes = {
      {"dims", {List{1}}},
      {"permutation", {List{1, 0}}},
      {"offsets", {List{0, 0}}},
      {"sizes", {List{4, 4}}},
      {"low", {List{0, 0}}},
      {"high", {List{0, 1}}},
      {"window", {List{2, 2}}},
      {"strides", {List{1, 1}, true}},
      {"paddings", {List{0, 0}, true}},
      {"dilations", {List{1, 1}, true}},
      {"dim", {int64_t{0}, true}},
      {"rows", {int64_t{100}}},
      {"count", {int64_t{1}}},
      {"ignore_index", {int64_t{-100}, true}},
      {"seed", {int64_t{0}, true}},
      {"key", {int64_t{0}, true}},
      {"keep_dims", {false}},
      {"reverse", {false, true}},
      {"descending", {false, true}},
      {"transpose_a", {false}},
      {"transpose_b", {false}},
      {"causal", {false, true}},
      {"interleaved", {false, true}},
      {"inverse", {false, true}},
      {"bias_gradient", {false}},
      {"global_shape", {List{8, 4}}},
      {"origins", {List{0, 0, 0}}},
      {"nesterov", {false}},
      {"decoupled", {false}},
      {"approximate", {std::string("tanh")}},
      {"predicate", {std::string("eq"), true}},
      {"distribution", {std::string("normal"), true}},
      {"layout", {std::string(""), true}},
      {"spec", {std::string("m k, k n -> m n")}},
      {"factors", {std::string("r c -> r c")}},
      {"kind", {std::string("own"), true}},
      {"work", {1.0, true}},
      {"rate", {0.5, true}},
      {"value", {0.0, true}},
      {"slope", {0.01, true}},
      {"alpha", {1.0, true}},
      {"a", {0.0, true}},
      {"b", {1.0, true}},
      {"scale", {1.0}},
      {"epsilon", {1e-5}},
      {"momentum", {0.5}},
      {"weight_decay", {0.5}},
      {"decay", {0.9}},
      {"gain", {0.1}},
      {"beta1", {0.9}},
      {"beta2", {0.999}},
  };
  return attributes;
}

std::string printed(const OperatorAttribute& value) {
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
    return absl::StrCat("[", absl::StrJoin(*list, ","), "]");
  }
  if (const auto* text = std::get_if<std::string>(&value)) {
    return absl::StrCat("'", *text, "'");
  }
  if (const auto* flag = std::get_if<bool>(&value)) {
    return *flag ? "true" : "false";
  }
  const auto* integer = std::get_if<int64_t>(&value);
  return integer != nullptr ? absl::StrCat(*integer) : absl::StrCat(std::get<double>(value));
}

absl::StatusOr<std::vector<int64_t>> parseList(const std::string& text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') {
    return absl::InvalidArgumentError("it is a list");
  }
  std::vector<int64_t> values;
  const std::vector<std::string> parts =
      absl::StrSplit(text.substr(1, text.size() - 2), absl::ByAnyChar(", "), absl::SkipEmpty());
  for (const std::string& part : parts) {
    WEFT_ASSIGN_OR_RETURN(const int64_t value, parseInteger(part));
    values.push_back(value);
  }
  return values;
}

// `text` in the form of `example`.
absl::StatusOr<OperatorAttribute> parseLike(const OperatorAttribute& example, const std::string& text) {
  if (std::holds_alternative<std::vector<int64_t>>(example)) {
    WEFT_ASSIGN_OR_RETURN(std::vector<int64_t> list, parseList(text));
    return OperatorAttribute(std::move(list));
  }
  if (std::holds_alternative<int64_t>(example)) {
    WEFT_ASSIGN_OR_RETURN(const int64_t value, parseInteger(text));
    return OperatorAttribute(value);
  }
  if (std::holds_alternative<double>(example)) {
    WEFT_ASSIGN_OR_RETURN(const double value, parseReal(text));
    return OperatorAttribute(value);
  }
  if (std::holds_alternative<bool>(example)) {
    return text == "true" || text == "false" ? absl::StatusOr<OperatorAttribute>(text == "true")
                                             : absl::InvalidArgumentError("it is true or false");
  }
  return OperatorAttribute(text);
}

Shape part(const Shape& shape, size_t from, size_t count) {
  return Shape(shape.begin() + static_cast<int64_t>(from), shape.begin() + static_cast<int64_t>(from + count));
}

// What one operator lacks, filled in. Whoever asks for a value gives the example of the message where it is missing.
class Completer {
 public:
  explicit Completer(OperatorRequest& request) : request_(request) {}

  absl::Status run() {
    static const std::map<std::string, absl::Status (Completer::*)()> kOperators = {
        {"sum", &Completer::reduction},
        {"mean", &Completer::reduction},
        {"max", &Completer::reduction},
        {"min", &Completer::reduction},
        {"flip", &Completer::flip},
        {"cumsum", &Completer::along},
        {"prod", &Completer::along},
        {"prod_grad", &Completer::along},
        {"argmax", &Completer::along},
        {"argmin", &Completer::along},
        {"sort", &Completer::sort},
        {"gather", &Completer::gather},
        {"scatter_add", &Completer::scatterAdd},
        {"transpose", &Completer::transpose},
        {"slice", &Completer::slice},
        {"pad", &Completer::pad},
        {"concat", &Completer::concat},
        {"reshape", &Completer::namedResult},
        {"broadcast", &Completer::namedResult},
        {"cast", &Completer::sameResult},
        {"embedding", &Completer::embedding},
        {"embedding_grad", &Completer::embeddingGrad},
        {"softmax_cross_entropy", &Completer::crossEntropy},
        {"pick_grad", &Completer::namedResult},
        {"channel_sum", &Completer::channelSum},
        {"contract", &Completer::contract},
        {"custom", &Completer::custom},
        {"attention", &Completer::attention},
        {"attention_grad", &Completer::attention},
        {"conv2d_input_grad", &Completer::inputGradient},
        {"conv2d_weight_grad", &Completer::weightGradient},
        {"max_pool2d", &Completer::pool},
        {"avg_pool2d", &Completer::pool},
        {"max_pool2d_grad", &Completer::poolGradient},
        {"avg_pool2d_grad", &Completer::averageGradient},
    };
    if (request_.isSource) {
      return source();
    }
    const auto it = kOperators.find(request_.op);
    return it == kOperators.end() ? rest() : (this->*it->second)();
  }

 private:
  bool has(const std::string& name) const { return request_.attributes.count(name) > 0; }
  void set(const std::string& name, OperatorAttribute value) { request_.attributes.emplace(name, std::move(value)); }
  // The shape of an operand; empty where the user gave too few, which the operator itself refuses.
  Shape operand(size_t i) const { return i < request_.operands.size() ? request_.operands[i] : Shape(); }
  std::optional<Shape> result() const {
    return request_.results.empty() ? std::nullopt : std::optional<Shape>(request_.results[0]);
  }
  const std::vector<int64_t>& list(const std::string& name) const {
    return std::get<std::vector<int64_t>>(request_.attributes.at(name));
  }

  absl::Status missing(const std::string& name, const OperatorAttribute& example, const std::string& other = "") const {
    return absl::InvalidArgumentError(absl::StrCat(request_.op, ": '", name,
                                                   "' does not follow from the shapes; write ", name, "=",
                                                   printed(example), other.empty() ? "" : ", or ", other));
  }

  absl::Status missingResult(const Shape& example) const {
    return absl::InvalidArgumentError(absl::StrCat(
        request_.op, ": the shape of the result does not follow; write --results ", absl::StrJoin(example, ",")));
  }

  // Values that do not change what may be split.
  absl::Status rest() {
    for (const std::string& name : request_.declared) {
      const auto it = known().find(name);
      if (it != known().end() && it->second.neutral) {
        set(name, it->second.example);
      }
    }
    return absl::OkStatus();
  }

  absl::Status namedResult() {
    return result() ? rest() : missingResult(request_.op == "reshape" ? Shape{24} : Shape{4, 6});
  }

  absl::Status source() { return result() ? rest() : missingResult({8, 4}); }

  absl::Status sameResult() {
    if (!result()) {
      request_.results.push_back(operand(0));
    }
    return rest();
  }

  // From a result of as many dimensions, of which some are 1; or from what is left of the dimensions, if only one
  // choice leaves it.
  absl::Status reduction() {
    const Shape x = operand(0);
    if (!has("dims")) {
      const std::vector<std::vector<int64_t>> found = result() ? reductions(x, *result()) : reductions(x, {});
      if (found.size() != 1 || (!result() && x.size() > 1)) {
        return missing("dims", std::vector<int64_t>{static_cast<int64_t>(x.size()) - 1},
                       found.size() == 1 ? "--results with the shape of the result" : "");
      }
      set("dims", found[0]);
    }
    set("keep_dims", result() && !x.empty() && result()->size() == x.size());
    if (request_.op == "mean") {
      int64_t count = 1;
      for (const int64_t dim : list("dims")) {
        count *= dim >= 0 && dim < static_cast<int64_t>(x.size()) ? x[dim] : 1;
      }
      set("count", count);
    }
    return rest();
  }

  static std::vector<std::vector<int64_t>> reductions(const Shape& x, const Shape& y) {
    std::vector<std::vector<int64_t>> found;
    // Shapes have few dimensions; a shape of many is not searched.
    for (uint32_t mask = 0; x.size() <= 12 && mask < (1U << x.size()); ++mask) {
      std::vector<int64_t> dims;
      Shape left;
      Shape kept;
      for (size_t d = 0; d < x.size(); ++d) {
        const bool reduced = ((mask >> d) & 1) != 0;
        kept.push_back(reduced ? 1 : x[d]);
        reduced ? dims.push_back(static_cast<int64_t>(d)) : left.push_back(x[d]);
      }
      if (left == y || (kept == y && !dims.empty())) {
        found.push_back(dims);
      }
    }
    return found;
  }

  absl::Status transpose() {
    if (has("permutation")) {
      return rest();
    }
    std::vector<int64_t> order(operand(0).size());
    for (size_t d = 0; d < order.size(); ++d) {
      order[d] = static_cast<int64_t>(d);
    }
    std::vector<int64_t> example = order;
    if (example.size() > 1) {
      std::swap(example[example.size() - 1], example[example.size() - 2]);
    }
    std::vector<std::vector<int64_t>> found;
    while (result() && order.size() <= 8) {
      Shape moved;
      for (const int64_t d : order) {
        moved.push_back(operand(0)[d]);
      }
      if (moved == *result()) {
        found.push_back(order);
      }
      if (!std::next_permutation(order.begin(), order.end())) {
        break;
      }
    }
    if (!result() && order.size() <= 2) {
      found.push_back(example);
    }
    if (found.size() != 1) {
      return missing("permutation", example);
    }
    set("permutation", found[0]);
    return rest();
  }

  absl::Status slice() {
    const Shape x = operand(0);
    if (!has("sizes")) {
      if (!result()) {
        return missing("sizes", x, "--results with the shape of the result");
      }
      set("sizes", *result());
    }
    set("offsets", std::vector<int64_t>(x.size(), 0));
    return rest();
  }

  absl::Status pad() {
    const Shape x = operand(0);
    set("low", std::vector<int64_t>(x.size(), 0));
    if (has("high")) {
      return rest();
    }
    if (!result() || result()->size() != x.size()) {
      return missing("high", std::vector<int64_t>(x.size(), 1), "--results with the shape of the result");
    }
    std::vector<int64_t> high;
    for (size_t d = 0; d < x.size(); ++d) {
      high.push_back((*result())[d] - x[d] - (d < list("low").size() ? list("low")[d] : 0));
    }
    set("high", high);
    return rest();
  }

  // The one dimension in which operands differ, or the result from them.
  absl::Status concat() {
    if (has("dim")) {
      return rest();
    }
    const Shape x = operand(0);
    std::vector<int64_t> differ;
    for (size_t d = 0; d < x.size(); ++d) {
      const auto other = [&](const Shape& shape) { return shape.size() == x.size() && shape[d] != x[d]; };
      if (std::any_of(request_.operands.begin(), request_.operands.end(), other) || (result() && other(*result()))) {
        differ.push_back(static_cast<int64_t>(d));
      }
    }
    if (differ.size() != 1 && x.size() != 1) {
      return missing("dim", int64_t{0}, "--results with the shape of the result");
    }
    set("dim", x.size() == 1 ? 0 : differ[0]);
    return rest();
  }

  absl::Status flip() {
    if (!has("dims") && operand(0).size() != 1) {
      return missing("dims", std::vector<int64_t>{static_cast<int64_t>(operand(0).size()) - 1});
    }
    set("dims", std::vector<int64_t>{0});
    return rest();
  }

  absl::Status along() {
    if (!has("dim") && operand(0).size() > 1) {
      return missing("dim", static_cast<int64_t>(operand(0).size()) - 1);
    }
    return rest();
  }

  absl::Status sort() {
    set("count", operand(0).empty() ? int64_t{1} : operand(0).back());
    return rest();
  }

  // The size of dimension `dim` of x; 1 where it has none, which the operator itself refuses.
  int64_t sizeAlong(const Shape& x) const {
    const int64_t dim = std::get<int64_t>(request_.attributes.at("dim"));
    return dim >= 0 && dim < static_cast<int64_t>(x.size()) ? x[dim] : 1;
  }

  absl::Status gather() {
    WEFT_RETURN_IF_ERROR(along());
    set("rows", sizeAlong(operand(0)));
    return absl::OkStatus();
  }

  absl::Status scatterAdd() {
    WEFT_RETURN_IF_ERROR(along());
    if (!result()) {
      return missingResult(operand(0));
    }
    set("rows", sizeAlong(*result()));
    return absl::OkStatus();
  }

  absl::Status embedding() {
    set("rows", operand(0).empty() ? int64_t{1} : operand(0)[0]);
    return rest();
  }

  absl::Status embeddingGrad() {
    if (result() && !result()->empty()) {
      set("rows", (*result())[0]);
    }
    if (!has("rows")) {
      return missing("rows", int64_t{100}, "--results with the shape of the table");
    }
    if (!result()) {
      request_.results.push_back(
          {std::get<int64_t>(request_.attributes["rows"]), operand(1).empty() ? int64_t{1} : operand(1).back()});
    }
    return rest();
  }

  absl::Status crossEntropy() {
    set("rows", operand(0).empty() ? int64_t{1} : operand(0).back());
    return rest();
  }

  absl::Status channelSum() {
    if (!result() && operand(0).size() > 1) {
      request_.results.push_back({1, operand(0)[1]});
    }
    return result() ? rest() : missingResult({1, 4});
  }

  absl::Status contract() {
    const bool products = operand(0).size() == 2 && operand(1).size() == 2;
    return has("spec") ? rest() : missing("spec", std::string(products ? "m k, k n -> m n" : "b m k, b k n -> b m n"));
  }

  // A user's own operator: nothing follows, but a result like the first operand.
  absl::Status custom() {
    if (!has("factors")) {
      return missing("factors", std::string("r c -> r c"));
    }
    return sameResult();
  }

  absl::Status attention() {
    const Shape q = operand(0);
    set("scale", q.empty() ? 1.0 : 1.0 / std::sqrt(static_cast<double>(q.back())));
    return rest();
  }

  // Steps are 1 and paddings 0 unless the user says otherwise; then sizes follow, the smallest where several fit.
  int64_t step(const std::string& name, size_t d) const {
    return list(name).size() == 2 ? std::clamp<int64_t>(list(name)[d], 0, 1 << 20) : 1;
  }

  absl::Status inputGradient() {
    WEFT_RETURN_IF_ERROR(rest());
    const Shape dy = operand(0);
    const Shape weight = operand(1);
    if (!result() && dy.size() == 4 && weight.size() == 4) {
      Shape x = {dy[0], weight[1]};
      for (size_t d = 0; d < 2; ++d) {
        const int64_t reach = (weight[2 + d] - 1) * step("dilations", d) + 1;
        x.push_back((dy[2 + d] - 1) * step("strides", d) + reach - 2 * step("paddings", d));
      }
      request_.results.push_back(x);
    }
    return result() ? absl::OkStatus() : missingResult({8, 3, 16, 16});
  }

  absl::Status weightGradient() {
    WEFT_RETURN_IF_ERROR(rest());
    const Shape x = operand(0);
    const Shape dy = operand(1);
    if (!result() && x.size() == 4 && dy.size() == 4) {
      Shape weight = {dy[1], x[1]};
      for (size_t d = 0; d < 2; ++d) {
        const int64_t reach = x[2 + d] + 2 * step("paddings", d) - (dy[2 + d] - 1) * step("strides", d);
        weight.push_back((reach - 1) / std::max<int64_t>(step("dilations", d), 1) + 1);
      }
      request_.results.push_back(weight);
    }
    return result() ? absl::OkStatus() : missingResult({8, 3, 3, 3});
  }

  // Windows that touch and do not overlap: as many as the pooled image has places.
  absl::Status windowOf(const Shape& image, const std::optional<Shape>& pooled) {
    if (!has("window") && pooled && image.size() == 4 && pooled->size() == 4 && image[2] % (*pooled)[2] == 0 &&
        image[3] % (*pooled)[3] == 0) {
      set("window", std::vector<int64_t>{image[2] / (*pooled)[2], image[3] / (*pooled)[3]});
    }
    if (!has("window")) {
      return missing("window", std::vector<int64_t>{2, 2});
    }
    set("strides", list("window"));
    set("paddings", std::vector<int64_t>{0, 0});
    return absl::OkStatus();
  }

  absl::Status pool() { return windowOf(operand(0), result()); }
  absl::Status poolGradient() { return windowOf(operand(0), operand(1)); }

  absl::Status averageGradient() {
    WEFT_RETURN_IF_ERROR(windowOf(result().value_or(Shape()), operand(0)));
    const Shape dy = operand(0);
    if (!result() && dy.size() == 4) {
      Shape x = part(dy, 0, 2);
      for (size_t d = 0; d < 2; ++d) {
        x.push_back((dy[2 + d] - 1) * step("strides", d) + step("window", d) - 2 * step("paddings", d));
      }
      request_.results.push_back(x);
    }
    return result() ? absl::OkStatus() : missingResult({8, 3, 16, 16});
  }

  OperatorRequest& request_;
};

}  // namespace

absl::Status addAttribute(const std::string& text, OperatorRequest& request) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  if (equals == std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is no attribute; write NAME=VALUE, such as dims=[1]"));
  }
  const auto it = known().find(name);
  if (it == known().end()) {
    std::vector<std::string> names;
    for (const auto& [other, example] : known()) {
      names.push_back(other);
    }
    return absl::InvalidArgumentError(
        absl::StrCat("no operator has an attribute '", name, "'; did you mean '", nearestName(name, names), "'?"));
  }
  const absl::StatusOr<OperatorAttribute> value = parseLike(it->second.example, text.substr(equals + 1));
  if (!value.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("attribute ", name, "=", text.substr(equals + 1), ": ",
                                                   std::string(value.status().message()), "; write for instance ", name,
                                                   "=", printed(it->second.example)));
  }
  if (!request.attributes.emplace(name, *value).second) {
    return absl::InvalidArgumentError(absl::StrCat("attribute '", name, "' is given twice"));
  }
  return absl::OkStatus();
}

absl::Status complete(OperatorRequest& request) {
  return Completer(request).run();
}

}  // namespace weft::tools
