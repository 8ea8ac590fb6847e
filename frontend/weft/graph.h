// The graph builder: a model written as for one device.
//
// A Graph collects operators as they are called; a Tensor is a handle to a value in it. Nothing runs until the graph is
// compiled (weft/compile.h). Where tensors lie is said, if at all, by `shard` on a result (strategies of the operator
// that made it) and `constrain` (layout of a value); an operator that says nothing is filled by propagation.
//
//   weft::Graph g;
//   auto x = g.input("x", {64, 784});
//   auto w = g.parameter("w", {784, 10}, weft::Init::normal(0.02));
//   auto y = weft::matmul(x, w).shard({{4, 1}, {1, 1}});             // rows of x over 4 ranks
//   auto z = weft::matmul(y, v).shard({{"dp", ""}, {"", "tp"}});     // by axis names of the mesh
//
// Errors. The first wrong call is remembered with the user's source line and returned by compile(); later calls do no
// harm. `g.status()` shows it at once. Every operator remembers the line of the call that made it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "planner/optimizer.h"

namespace weft {

using Shape = std::vector<int64_t>;

enum class Type : uint8_t { kF32, kF64, kI32, kI64, kBool };
inline constexpr Type kF32 = Type::kF32;
inline constexpr Type kF64 = Type::kF64;
inline constexpr Type kI32 = Type::kI32;
inline constexpr Type kI64 = Type::kI64;
inline constexpr Type kBool = Type::kBool;

// The place of a call in the user's source; a default argument fills it in.
struct SourceLine {
  const char* file = "";
  int line = 0;
  static SourceLine current(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }
};

// Two or more axes on one dimension, left = major: weft::axes("dp", "tp").
struct Axes {
  std::string text;
};
template <typename... Names>
Axes axes(const std::string& first, const Names&... rest) {
  std::string text = first;
  ((text += "," + std::string(rest)), ...);
  return {text};
}

// How one dimension is split: a number of parts, or axis names: "" or "None" = not split, "dp,?" = over dp and what
// propagation adds, "?" = left to propagation.
class Split {
 public:
  Split(int parts) : parts_(parts) {}                                   // NOLINT: elements of brace lists
  Split(int64_t parts) : parts_(parts) {}                               // NOLINT
  Split(const char* names) : names_(names), named_(true) {}             // NOLINT
  Split(std::string names) : names_(std::move(names)), named_(true) {}  // NOLINT
  Split(Axes axes) : names_(std::move(axes.text)), named_(true) {}      // NOLINT

  bool named() const { return named_; }
  int64_t parts() const { return parts_; }
  const std::string& names() const { return names_; }

 private:
  int64_t parts_ = 1;
  std::string names_;
  bool named_ = false;
};
// One list per operand (or result), one Split per dimension. An element type of its own: {{"dp", ""}, {"", "tp"}} must
// not be taken for a list of strings made from pairs of iterators.
class TensorSplits {
 public:
  TensorSplits(std::initializer_list<Split> splits) : splits_(splits) {}   // NOLINT
  TensorSplits(std::vector<Split> splits) : splits_(std::move(splits)) {}  // NOLINT
  const std::vector<Split>& splits() const { return splits_; }

 private:
  std::vector<Split> splits_;
};

// A strategy for every operator whose name fits a pattern ('*' stands for any characters, '?' for one): what
// Tensor::shard says of one. A model that names its operators needs no words about sharding of its own; a table of such
// rows says how it is split, and another table splits it otherwise.
struct ShardingRule {
  std::string operators;
  std::vector<TensorSplits> in;
  std::vector<TensorSplits> out = {};
};
using ShardingTable = std::vector<ShardingRule>;

class GraphImpl;

// A value of a graph. Cheap to copy; valid while its Graph lives.
class Tensor {
 public:
  Tensor() = default;
  Tensor(GraphImpl* graph, int id) : graph_(graph), id_(id) {}

  // Global shape; empty for a scalar and for a value that an error left undefined.
  Shape shape() const;
  int64_t dim(int64_t d) const;  // negative counts from the end
  Type type() const;
  bool valid() const { return graph_ != nullptr && id_ >= 0; }

  // Strategies of the operator that made this value: for each operand a list with one entry per dimension; optionally
  // for each result. By numbers (MindSpore's meaning: parts take sub-axes of the line of ranks in the operator's rule
  // order, what is left repeats the computation) or by axis names of the mesh. Operands left out at the end, or given
  // as {}, follow from the others; what none of these says is left to propagation. Returns the same value.
  Tensor shard(std::initializer_list<TensorSplits> in, std::initializer_list<TensorSplits> out = {},
               SourceLine at = SourceLine::current()) const;
  // The operator that made this value is not kept for the backward pass: it runs again there, whoever reads it. For one
  // operator what Graph::recompute is for many. Returns the same value.
  Tensor recomputed(SourceLine at = SourceLine::current()) const;
  // A name for people, in dumps and explanations.
  Tensor named(const std::string& name) const;

  GraphImpl* graph() const { return graph_; }
  int id() const { return id_; }

 private:
  GraphImpl* graph_ = nullptr;
  int id_ = -1;
};

// First values of a parameter. Random ones depend on (seed, parameter name, global index) only, never on the layout.
struct Init {
  std::string distribution = "zeros";
  double a = 0;
  double b = 0;
  static Init zeros() { return {"zeros", 0, 0}; }
  static Init ones() { return {"ones", 0, 0}; }
  static Init constant(double value) { return {"constant", value, 0}; }
  static Init normal(double deviation, double mean = 0) { return {"normal", mean, deviation}; }
  static Init uniform(double low, double high) { return {"uniform", low, high}; }
};

struct ParameterOptions {
  bool frozen = false;  // has no gradient and is not updated
  Shape fileShape;      // shape in checkpoints, if it is another view of the same elements ([C,3,C] kept as [C,3C])
  std::string layout;   // "[{tp},{}] pad{0:62}"; empty: as its first reader wants it
};

struct InputOptions {
  int batchDim = 0;    // dimension that carries the batch, -1 none
  std::string layout;  // empty: batch over the data-parallel axes
};

struct AssignOptions {
  bool alsoForward = false;  // by forward programs, too
};

// Holds for what is made while it lives: a prefix of names ("h0." in front of parameters and operators), a pipeline
// stage, recomputation, or a module's call, which errors name.
class Scope {
 public:
  enum class Kind : uint8_t { kName, kStage, kRecompute, kModule };

  Scope(GraphImpl* graph, Kind kind) : graph_(graph), kind_(kind) {}
  ~Scope();
  Scope(Scope&& other) noexcept : graph_(other.graph_), kind_(other.kind_) { other.graph_ = nullptr; }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  GraphImpl* graph_;
  Kind kind_;
};

class Graph {
 public:
  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // What the host feeds each step.
  Tensor input(const std::string& name, const Shape& shape, Type type = kF32, const InputOptions& options = {},
               SourceLine at = SourceLine::current());
  // A trained tensor.
  Tensor parameter(const std::string& name, const Shape& shape, const Init& init = Init::zeros(),
                   const ParameterOptions& options = {}, SourceLine at = SourceLine::current());
  // A value that an operator needs from step to step: the step count of dropout is state "step". Again under the same
  // name: the same state, if shape, type and first value are the same. The optimizer's names ("lr", "adam.m.w") are
  // taken.
  Tensor state(const std::string& name, const Shape& shape, Type type, double first,
               SourceLine at = SourceLine::current());
  // The training step replaces a state or a parameter by `value`, of the same shape and type, once: a moving average, a
  // counter, an update of one's own; the optimizer of compile() leaves that parameter alone. What reads it in the graph
  // reads what it was before the step. In micro-batches `value` is known after the last one; it may be a sum or mean
  // over the batch, and carries no batch itself. A forward program changes only the state that is assigned with
  // `alsoForward`: a cache of what it has seen.
  void assign(const Tensor& target, const Tensor& value, const AssignOptions& options = {},
              SourceLine at = SourceLine::current());
  // The training step moves each parameter by its gradient (weft::grad, or what was made of it) as the optimizer says,
  // instead of the optimizer of compile(). Several losses have an optimizer each so:
  //
  //   g.update(critic, weft::grad(criticLoss, critic), optim::Adam{.lr = 4e-4});
  //   g.update(actor, weft::grad(actorLoss, actor), optim::Adam{.lr = 1e-4});
  //   auto program = weft::compile(g, criticLoss + actorLoss, optim::Own{});
  //
  // The program has one learning rate (Feed::setLearningRate), that of compile()'s optimizer or, where it has none, of
  // the first update; the others are factors of it. CompileOptions::clipNorm does not reach these gradients.
  void update(const std::vector<Tensor>& parameters, const std::vector<Tensor>& gradients, const Optimizer& optimizer,
              SourceLine at = SourceLine::current());
  // Every element `value`.
  Tensor full(const Shape& shape, double value, Type type = kF32, SourceLine at = SourceLine::current());
  // The same values on every device, part of the program: row-major, as many as the shape has elements.
  Tensor constant(const Shape& shape, const std::vector<double>& values, Type type = kF32,
                  SourceLine at = SourceLine::current());
  // Every element its index in dimension `dim`.
  Tensor iota(const Shape& shape, int dim, Type type = kI32, SourceLine at = SourceLine::current());
  // Type of parameters made from here on (modules use it); kF32 unless set.
  void setParameterType(Type type);

  [[nodiscard]] Scope scope(const std::string& name);
  // Pipeline stage of the operators made while the scope lives; the innermost scope counts. Operators outside of any
  // follow their operands. Parameters belong to the stages of their readers. Stages are 0, 1, ... without gaps.
  [[nodiscard]] Scope stage(int number);
  // What is made while the scope lives is not kept for the backward pass, but recomputed there from what the scope
  // reads. Values that are read outside of the scope are kept.
  [[nodiscard]] Scope recompute();
  // Gives the operators made so far the strategies of the table, by their names; the last row that fits counts. Errors:
  // a row that fits none, with the nearest name; those of Tensor::shard.
  void shard(const ShardingTable& table, SourceLine at = SourceLine::current());
  // Makes a value an output of the program under this name, which no argument of the graph has. The host reads it after
  // a step, whole: what carries the batch in the order of its rows, a sum, mean or maximum over the batch of all rows,
  // whatever the mesh and the number of micro-batches; a parameter or state as the step found it.
  void output(const std::string& name, const Tensor& value, SourceLine at = SourceLine::current());

  // The first error, with the user's line.
  absl::Status status() const;
  // The logical module as text.
  std::string print() const;

  GraphImpl* impl() const { return impl_.get(); }

 private:
  std::unique_ptr<GraphImpl> impl_;
};

}  // namespace weft
