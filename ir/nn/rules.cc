#include "ir/nn/rules.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/nn/contract_spec.h"
#include "ir/nn/window_line.h"

namespace weft::ir::rules {
namespace {

using Words = std::vector<std::string>;

Words numbered(const std::string& prefix, size_t count, const std::string& mark = "") {
  Words words;
  for (size_t i = 0; i < count; ++i) {
    words.push_back(absl::StrCat(prefix, i, mark));
  }
  return words;
}

Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::string tensors(const std::vector<Words>& list) {
  return absl::StrJoin(list, ", ",
                       [](std::string* out, const Words& words) { absl::StrAppend(out, absl::StrJoin(words, " ")); });
}

std::string arrow(const std::vector<Words>& operands, const std::vector<Words>& results) {
  return absl::StrCat(tensors(operands), " -> ", tensors(results));
}

size_t rankOf(mlir::Value value) {
  return shapeOf(value).size();
}

// Dimensions of a tensor that broadcasts against `result`.
Words aligned(const Shape& shape, const Shape& result) {
  Words words;
  size_t shift = result.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d) {
    bool stretched = shape[d] == 1 && result[d + shift] != 1;
    words.push_back(stretched ? "1" : absl::StrCat("d", d + shift));
  }
  return words;
}

}  // namespace

std::string elementwise(mlir::Operation* op) {
  Shape result = shapeOf(op->getResult(0));
  std::vector<Words> operands;
  for (const Shape& shape : operandShapes(op)) {
    operands.push_back(aligned(shape, result));
  }
  return arrow(operands, std::vector<Words>(op->getNumResults(), numbered("d", result.size())));
}

std::string matmul(mlir::Operation* op, bool transposeA, bool transposeB) {
  Words batch = numbered("b", rankOf(op->getOperand(0)) - 2);
  Words a = batch + (transposeA ? Words{"k+", "m"} : Words{"m", "k+"});
  Words b = transposeB ? Words{"n", "k+"} : Words{"k+", "n"};
  if (rankOf(op->getOperand(1)) > 2) {
    b = batch + b;
  }
  return arrow({a, b}, {batch + Words{"m", "n"}});
}

std::string contract(llvm::StringRef text) {
  ContractSpec spec = *parseContractSpec(text);
  auto marked = [&](const Words& letters) {
    Words words;
    for (const std::string& letter : letters) {
      words.push_back(spec.isSummed(letter) ? letter + "+" : letter);
    }
    return words;
  };
  return arrow({marked(spec.a), marked(spec.b)}, {spec.result});
}

std::string reshape(mlir::Operation* op) {
  return reshape(shapeOf(op->getOperand(0)), shapeOf(op->getResult(0)));
}

std::string transpose(llvm::ArrayRef<int64_t> permutation) {
  Words operand(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) {
    operand[permutation[i]] = absl::StrCat("d", i);
  }
  return arrow({operand}, {numbered("d", permutation.size())});
}

std::string sliceLike(mlir::Operation* op) {
  Shape from = shapeOf(op->getOperand(0));
  Shape to = shapeOf(op->getResult(0));
  Words operand;
  Words result;
  for (size_t d = 0; d < from.size(); ++d) {
    operand.push_back(absl::StrCat(from[d] == to[d] ? "d" : "s", d, from[d] == to[d] ? "" : "!"));
    result.push_back(absl::StrCat(from[d] == to[d] ? "d" : "r", d, from[d] == to[d] ? "" : "!"));
  }
  return arrow({operand}, {result});
}

std::string concat(mlir::Operation* op, int64_t dim) {
  Words whole = numbered("d", rankOf(op->getResult(0)));
  std::vector<Words> operands;
  for (unsigned i = 0; i <= op->getNumOperands(); ++i) {
    operands.push_back(whole);
    operands.back()[dim] = absl::StrCat("c", i, "!");
  }
  Words result = operands.back();
  operands.pop_back();
  return arrow(operands, {result});
}

std::string reduce(mlir::Operation* op, llvm::ArrayRef<int64_t> dims, bool keepDims) {
  Words operand = numbered("d", rankOf(op->getOperand(0)));
  Words result;
  for (size_t d = 0; d < operand.size(); ++d) {
    if (!llvm::is_contained(dims, static_cast<int64_t>(d))) {
      result.push_back(operand[d]);
      continue;
    }
    operand[d] += "+";
    if (keepDims) {
      result.push_back("1");
    }
  }
  return arrow({operand}, {result});
}

std::string reduceAll(mlir::Operation* op) {
  return arrow({numbered("d", rankOf(op->getOperand(0)), "+")}, {{}});
}

std::string wholeDims(mlir::Operation* op, llvm::ArrayRef<int64_t> dims) {
  const Words all = numbered("d", rankOf(op->getOperand(0)));
  Words whole = all;
  Words others;
  for (size_t d = 0; d < all.size(); ++d) {
    if (llvm::is_contained(dims, static_cast<int64_t>(d))) {
      whole[d] += "!";
    } else {
      others.push_back(all[d]);
    }
  }
  const auto wordsOf = [&](mlir::ValueRange values) {
    std::vector<Words> words;
    for (mlir::Value value : values) {
      words.push_back(rankOf(value) == all.size() ? whole : others);
    }
    return words;
  };
  return arrow(wordsOf(op->getOperands()), wordsOf(op->getResults()));
}

std::string sort(mlir::Operation* op) {
  const Words lead = numbered("d", rankOf(op->getOperand(0)) - 1);
  return arrow({lead + Words{"s!"}}, {lead + Words{"r!"}, lead + Words{"r!"}});
}

std::string wholeLast(mlir::Operation* op) {
  Words words = numbered("d", rankOf(op->getResult(0)));
  words.back() += "!";
  return arrow(std::vector<Words>(op->getNumOperands(), words), {words});
}

std::string layerNorm(mlir::Operation* op) {
  Words lead = numbered("d", rankOf(op->getOperand(0)) - 1);
  return arrow({lead + Words{"c!"}, {"c!"}, {"c!"}}, {lead + Words{"c"}, lead, lead});
}

std::string layerNormGrad(mlir::Operation* op) {
  size_t rank = rankOf(op->getOperand(0)) - 1;
  Words lead = numbered("d", rank);
  return arrow({numbered("d", rank, "+") + Words{"c!"}, {"c!"}, lead, lead, lead + Words{"c"}},
               {lead + Words{"c"}, {"c"}, {"c"}});
}

std::string rmsNorm(mlir::Operation* op) {
  Words lead = numbered("d", rankOf(op->getOperand(0)) - 1);
  return arrow({lead + Words{"c!"}, {"c!"}}, {lead + Words{"c"}, lead});
}

std::string rmsNormGrad(mlir::Operation* op) {
  size_t rank = rankOf(op->getOperand(0)) - 1;
  Words lead = numbered("d", rank);
  return arrow({numbered("d", rank, "+") + Words{"c!"}, {"c!"}, lead, lead + Words{"c"}}, {lead + Words{"c"}, {"c"}});
}

namespace {

// "(g ci)", or without groups "ci".
std::string inGroups(bool groups, const std::string& channels) {
  return groups ? absl::StrCat("(g ", channels, ")") : channels;
}

bool hasGroups(mlir::Value x, mlir::Value weight) {
  return shapeOf(x)[rankOf(x) - 3] != shapeOf(weight)[1];
}

}  // namespace

namespace {

// How the dimensions of an image and of its result are cut, [vertical, horizontal].
class ImageWords {
 public:
  // `heightExpands`: has the operator an expansion for blocks of rows?
  ImageWords(const Shape& image, const Shape& result, llvm::ArrayRef<int64_t> window, const infer::WindowSteps& steps,
             bool heightExpands)
      : rank_(image.size()) {
    for (size_t d = 0; d < 2; ++d) {
      lines_[d] = {image[rank_ - 2 + d], result[rank_ - 2 + d], window[d],
                   steps.strides[d],     steps.paddings[d],     steps.dilations.empty() ? 1 : steps.dilations[d]};
    }
    heightExpands_ = heightExpands && lines_[0].hasBorders();
  }

  // `summed`: some result lacks the batch and the places of windows.
  Words image(const std::string& channels, bool summed = false) const {
    Words words = batch(summed);
    words.push_back(channels);
    for (const size_t d : {0, 1}) {
      const std::string blocks = absl::StrCat(kNames[d], "o", mark(d, summed));
      words.push_back(!comesInBlocks(d)       ? absl::StrCat(kNames[d], "!!")
                      : lines_[d].stride == 1 ? blocks
                                              : absl::StrCat("(", blocks, " ", kNames[d], "s!!)"));
    }
    return words;
  }
  Words result(const std::string& channels, bool summed = false) const {
    Words words = batch(summed);
    words.push_back(channels);
    for (const size_t d : {0, 1}) {
      words.push_back(absl::StrCat(kNames[d], "o", mark(d, summed)));
    }
    return words;
  }

 private:
  static constexpr const char* kNames[] = {"h", "w"};

  Words batch(bool summed) const {
    const std::string mark = summed ? "+" : "";
    return rank_ == 4 ? Words{"n" + mark} : numbered("n", rank_ - 3, mark);
  }
  // Does the image have as many elements for each place of the window?
  bool comesInBlocks(size_t d) const { return lines_[d].isPatches() || (d == 0 && heightExpands_); }
  std::string mark(size_t d, bool summed) const {
    return !comesInBlocks(d) ? "!!" : absl::StrCat(summed ? "+" : "", lines_[d].isPatches() ? "" : "!");
  }

  size_t rank_;
  WindowLine lines_[2];
  bool heightExpands_ = false;
};

ImageWords convolutionWords(mlir::Value x, mlir::Value weight, mlir::Value y, const infer::WindowSteps& steps) {
  const Shape window = shapeOf(weight);
  return {shapeOf(x), shapeOf(y), {window[2], window[3]}, steps, true};
}

Words weightWords(bool groups, const std::string& channels) {
  return {inGroups(groups, "co"), channels, "kh!!", "kw!!"};
}

}  // namespace

std::string conv2d(mlir::Operation* op, const infer::WindowSteps& steps) {
  const bool groups = hasGroups(op->getOperand(0), op->getOperand(1));
  const ImageWords words = convolutionWords(op->getOperand(0), op->getOperand(1), op->getResult(0), steps);
  return arrow({words.image(inGroups(groups, "ci+")), weightWords(groups, "ci+")},
               {words.result(inGroups(groups, "co"))});
}

std::string conv2dInputGrad(mlir::Operation* op, const infer::WindowSteps& steps) {
  const bool groups = hasGroups(op->getResult(0), op->getOperand(1));
  const ImageWords words = convolutionWords(op->getResult(0), op->getOperand(1), op->getOperand(0), steps);
  Words weight = weightWords(groups, "ci");
  weight[0] = inGroups(groups, "co+");
  return arrow({words.result(inGroups(groups, "co+")), weight}, {words.image(inGroups(groups, "ci"))});
}

std::string conv2dWeightGrad(mlir::Operation* op, const infer::WindowSteps& steps) {
  const bool groups = hasGroups(op->getOperand(0), op->getResult(0));
  const ImageWords words = convolutionWords(op->getOperand(0), op->getResult(0), op->getOperand(1), steps);
  return arrow({words.image(inGroups(groups, "ci"), true), words.result(inGroups(groups, "co"), true)},
               {weightWords(groups, "ci")});
}

std::string pool2d(mlir::Value x, mlir::Value y, llvm::ArrayRef<int64_t> window, const infer::WindowSteps& steps) {
  const ImageWords words(shapeOf(x), shapeOf(y), window, steps, false);
  return arrow({words.image("c")}, {words.result("c")});
}

std::string maxPool2dGrad(mlir::Operation* op, llvm::ArrayRef<int64_t> window, const infer::WindowSteps& steps) {
  const ImageWords words(shapeOf(op->getOperand(0)), shapeOf(op->getOperand(1)), window, steps, false);
  return arrow({words.image("c"), words.result("c")}, {words.image("c")});
}

std::string avgPool2dGrad(mlir::Operation* op, llvm::ArrayRef<int64_t> window, const infer::WindowSteps& steps) {
  const ImageWords words(shapeOf(op->getResult(0)), shapeOf(op->getOperand(0)), window, steps, false);
  return arrow({words.result("c")}, {words.image("c")});
}

namespace {

// The dimensions of attention's tensors.
class AttentionWords {
 public:
  explicit AttentionWords(mlir::Operation* op)
      : q_(shapeOf(op->getOperand(0))), shared_(q_[1] != shapeOf(op->getOperand(1))[1]) {}

  // `summed`: those that some gradient lacks.
  Words query(const Words& summed = {}) const {
    auto marked = [&](const std::string& letter) { return llvm::is_contained(summed, letter) ? letter + "+" : letter; };
    return {marked("b"), shared_ ? absl::StrCat("(", marked("h"), " ", marked("g"), ")") : marked("h"), marked("t")};
  }
  Words key() const { return {"b", "h", "s!"}; }
  // A bias that stretches over b, h or t has a 1 there.
  Words bias(const Shape& shape) const {
    Words words = query();
    for (size_t d = 0; d < words.size(); ++d) {
      words[d] = shape[d] == 1 && q_[d] != 1 ? "1" : words[d];
    }
    return words + Words{"s!"};
  }
  // What the gradients of keys and values lack, and that of a bias.
  Words summed(const Shape* bias) const {
    Words words = {"t"};
    if (shared_) {
      words.push_back("g");
    }
    if (bias != nullptr && (*bias)[0] == 1) {
      words.push_back("b");
    }
    if (bias != nullptr && (*bias)[1] == 1) {
      words.insert(words.end(), {"h", "g"});
    }
    return words;
  }

 private:
  Shape q_;
  bool shared_;
};

}  // namespace

std::string attention(mlir::Operation* op) {
  const AttentionWords words(op);
  const Words key = words.key() + Words{"d!!"};
  std::vector<Words> operands = {words.query() + Words{"d!!"}, key, key};
  if (op->getNumOperands() > 3) {
    operands.push_back(words.bias(shapeOf(op->getOperand(3))));
  }
  return arrow(operands, {words.query() + Words{"d"}, words.query()});
}

std::string attentionGrad(mlir::Operation* op) {
  const AttentionWords words(op);
  const Words key = words.key() + Words{"d!!"};
  const Words query = words.query() + Words{"d!!"};
  const Shape bias = op->getNumOperands() > 6 ? shapeOf(op->getOperand(6)) : Shape();
  const bool biasGradient = op->getNumResults() > 3;
  std::vector<Words> operands = {
      words.query(words.summed(biasGradient ? &bias : nullptr)) + Words{"d!!"}, key, key, query, words.query(), query};
  if (!bias.empty()) {
    operands.push_back(words.bias(bias));
  }
  const Words keyGradient = {"b", "h", "s", "d"};
  std::vector<Words> results = {words.query() + Words{"d"}, keyGradient, keyGradient};
  if (biasGradient) {
    results.push_back(words.bias(bias));
  }
  return arrow(operands, results);
}

std::string rotary(mlir::Operation* op) {
  const Words rows = numbered("d", rankOf(op->getOperand(0)) - 2) + Words{"t"};
  return arrow({rows + Words{"d!"}, {"t", "e!"}, {"t", "e!"}}, {rows + Words{"d"}});
}

namespace {

// The dimensions of an image whose batch and places are summed.
Words summedImage(mlir::Value x) {
  Words words = numbered("d", rankOf(x), "+");
  words[1] = "d1";
  return words;
}

}  // namespace

std::string batchNorm(mlir::Operation* op) {
  const size_t vectors = op->getNumOperands() - 1;
  std::vector<Words> operands(vectors, {"d1"});
  operands.insert(operands.begin(), summedImage(op->getOperand(0)));
  const Words statistic = {"p~", "d1"};
  std::vector<Words> results = {numbered("d", rankOf(op->getOperand(0))), statistic, statistic, statistic};
  results.resize(vectors + 2, {"d1"});
  return arrow(operands, results);
}

std::string batchNormGrad(mlir::Operation* op) {
  const Words image = numbered("d", rankOf(op->getOperand(0)));
  const Words statistic = {"p~", "d1"};
  return arrow({summedImage(op->getOperand(0)), {"d1"}, statistic, statistic, statistic, image},
               {image, {"d1"}, {"d1"}});
}

std::string channelSum(mlir::Operation* op) {
  return arrow({summedImage(op->getOperand(0))}, {{"p~", "d1"}});
}

std::string channelDot(mlir::Operation* op) {
  const Words image = summedImage(op->getOperand(0));
  return arrow({image, numbered("d", image.size()), {"p~", "d1"}}, {{"p~", "d1"}});
}

std::string channelAffine(mlir::Operation* op) {
  const Words image = numbered("d", rankOf(op->getOperand(0)));
  std::vector<Words> operands;
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    operands.push_back(i % 2 == 0 && i + 1 < op->getNumOperands() ? image : Words{"p~", "d1"});
  }
  return arrow(operands, {image});
}

std::string embedding(mlir::Operation* op) {
  Words ids = numbered("i", rankOf(op->getOperand(1)));
  return arrow({{"v+", "c"}, ids}, {ids + Words{"c"}});
}

std::string embeddingGrad(mlir::Operation* op) {
  size_t rank = rankOf(op->getOperand(0));
  return arrow({numbered("i", rank, "+"), numbered("i", rank) + Words{"c"}}, {{"v", "c"}});
}

std::string crossEntropy(mlir::Operation* op) {
  Words lead = numbered("d", rankOf(op->getOperand(1)));
  return arrow({lead + Words{"v!"}, lead}, {lead, lead});
}

std::string crossEntropyGrad(mlir::Operation* op) {
  Words lead = numbered("d", rankOf(op->getOperand(1)));
  return arrow({lead + Words{"v"}, lead, lead, lead}, {lead + Words{"v"}});
}

std::string pick(mlir::Operation* op) {
  Words lead = numbered("d", rankOf(op->getOperand(1)));
  return arrow({lead + Words{"v+"}, lead}, {lead});
}

std::string pickGrad(mlir::Operation* op) {
  Words lead = numbered("d", rankOf(op->getOperand(0)));
  return arrow({lead, lead}, {lead + Words{"v"}});
}

namespace {

// Dimensions of a tensor in which dimension `dim` is called `word`.
Words along(size_t rank, int64_t dim, const std::string& word) {
  Words words = numbered("d", rank);
  words[dim] = word;
  return words;
}

}  // namespace

std::string gather(mlir::Operation* op, int64_t dim) {
  const size_t rank = rankOf(op->getOperand(0));
  return arrow({along(rank, dim, "v+"), along(rank, dim, "k")}, {along(rank, dim, "k")});
}

std::string scatterAdd(mlir::Operation* op, int64_t dim) {
  const size_t rank = rankOf(op->getOperand(0));
  return arrow({along(rank, dim, "k+"), along(rank, dim, "k")}, {along(rank, dim, "v")});
}

double leastElement(mlir::Value x) {
  const bool isBool = llvm::cast<mlir::RankedTensorType>(x.getType()).getElementType().isInteger(1);
  return isBool ? 0.0 : -std::numeric_limits<double>::infinity();
}

std::string constant(mlir::Operation* op, bool splat) {
  return absl::StrCat("-> ", absl::StrJoin(numbered("d", rankOf(op->getResult(0)), splat ? "" : "!"), " "));
}

LinearSets listedSets(mlir::ArrayAttr sets) {
  LinearSets listed;
  for (mlir::Attribute set : sets) {
    auto numbers = llvm::dyn_cast<mlir::DenseI64ArrayAttr>(set);
    listed.emplace_back();
    for (int64_t operand : numbers ? numbers.asArrayRef() : llvm::ArrayRef<int64_t>()) {
      listed.back().push_back(static_cast<unsigned>(operand));
    }
  }
  return listed;
}

llvm::SmallVector<OriginRequest> listedOrigins(std::optional<llvm::ArrayRef<int64_t>> origins) {
  const llvm::ArrayRef<int64_t> listed = origins.value_or(llvm::ArrayRef<int64_t>());
  llvm::SmallVector<OriginRequest> requests;
  for (size_t i = 0; i + 2 < listed.size(); i += 3) {
    requests.push_back({listed[i] != 0, static_cast<unsigned>(listed[i + 1]), static_cast<unsigned>(listed[i + 2])});
  }
  return requests;
}

std::optional<double> listedPadFill(mlir::ArrayAttr fills, unsigned operand) {
  auto fill = fills && operand < fills.size() ? llvm::dyn_cast<mlir::FloatAttr>(fills[operand]) : mlir::FloatAttr();
  return fill ? std::optional<double>(fill.getValueAsDouble()) : std::nullopt;
}

std::optional<ReduceKind> reduceKindNamed(llvm::StringRef name) {
  for (const ReduceKind kind : {ReduceKind::kSum, ReduceKind::kMax, ReduceKind::kMin}) {
    if (reduceKindName(kind) == name) {
      return kind;
    }
  }
  return std::nullopt;
}

ReduceKind listedReduceKind(mlir::ArrayAttr kinds, unsigned result) {
  auto name = kinds && result < kinds.size() ? llvm::dyn_cast<mlir::StringAttr>(kinds[result]) : mlir::StringAttr();
  return name ? reduceKindNamed(name.getValue()).value_or(ReduceKind::kSum) : ReduceKind::kSum;
}

LinearSets allTogether(mlir::Operation* op) {
  LinearSets sets(1);
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    sets[0].push_back(i);
  }
  return sets;
}

llvm::SmallVector<OriginRequest> originsOf(bool isResult, unsigned index, mlir::Value tensor) {
  llvm::SmallVector<OriginRequest> requests;
  for (unsigned d = 0; d < rankOf(tensor); ++d) {
    requests.push_back({isResult, index, d});
  }
  return requests;
}

llvm::SmallVector<OriginRequest> originOfDim(bool isResult, unsigned index, mlir::Value tensor, int64_t dim) {
  int64_t rank = static_cast<int64_t>(rankOf(tensor));
  return {{isResult, index, static_cast<unsigned>(dim < 0 ? dim + rank : dim)}};
}

}  // namespace weft::ir::rules
