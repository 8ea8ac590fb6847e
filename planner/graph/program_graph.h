// The program graph: the logical step of one device as plain data, which is all that the planner knows of a program.
//
// It holds the operators of forward, gradient and update in program order, each with its facts (what the operator says
// of itself), what the user wrote on it, and its alternatives. Operators are named by their number (nn.id of the
// module), which never changes; values by the operator that makes them, or as arguments of the step.
//
// passes/decide/build_program_graph.h makes it from a module; graph_json.h writes and reads it as text; rewrites.h
// changes it as the module is changed by the record's rewrites.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ir/layout/layout.h"
#include "ir/layout/view_kind.h"
#include "kernels/describe/attributes.h"
#include "runtime/base/dtype.h"

namespace weft {

// A place in the user's program; `file` is empty where none is known.
struct SourcePlace {
  std::string file;
  int64_t line = 0;
  int64_t column = 0;
  friend bool operator==(const SourcePlace&, const SourcePlace&) = default;
};

// kInvalidArgument about this place. sourcePlaceOf finds the place again; "" as its file where there is none.
absl::Status errorAt(const SourcePlace& line, const std::string& message);
SourcePlace sourcePlaceOf(const absl::Status& status);

enum class Phase : uint8_t { kForward, kBackward, kUpdate };
enum class ArgumentKind : uint8_t { kInput, kParameter, kState };
std::string phaseName(Phase phase);               // "forward", "backward", "update"
std::string argumentKindName(ArgumentKind kind);  // "input", "parameter", "state"
std::string viewKindName(ViewKind view);          // "none", "shape", "annotation"

struct TensorType {
  Shape shape;
  DType type = DType::kF32;

  int64_t elements() const;
  int64_t bytes() const { return elements() * byteSize(type); }
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

// What an operator says of itself, whatever program it stands in.
struct OperatorFacts {
  std::string kind;                                // mnemonic: "matmul"
  std::string rule;                                // over the shapes of its operands and results (ir/layout/rule.h)
  std::vector<std::vector<unsigned>> linear = {};  // sets of operands in which it is jointly linear
  bool passesSums = false;                         // passes partial sums on instead of having them reduced before
  bool isSum = false;                              // of its operands: sums of sums may be taken in another order
  bool updatesParameter = false;                   // result 0 is the next value of the parameter in operand 0
  ViewKind view = ViewKind::kNone;                 // is result 0 operand 0 under another shape or name?
  bool isConstant = false;                         // its elements are part of the program: no instruction makes them
  bool mustExpand = false;                         // exists only to be expanded: its alternative is taken in any case
  // Floating-point operations for each point of its iteration space (planner/graph/flops.h).
  double flopsPerPoint = 0;
  // Of its kernel, at the sizes of the whole program: with them and local shapes kernels/describe/describe.h says
  // scratch memory and in-place pairs.
  AttributeMap attributes = {};
  // How each result is combined over the ranks of a split reducible factor; those not listed are sums.
  std::vector<ReduceKind> reduce = {};
  // For each operand what its padded elements must hold so that reducing or normalizing over them changes nothing;
  // none: the operator refuses a pad there. Operands not listed are filled with 0.
  std::vector<std::optional<double>> padFill = {};

  ReduceKind reduceOf(size_t result) const { return result < reduce.size() ? reduce[result] : ReduceKind::kSum; }
  std::optional<double> padFillOf(size_t operand) const { return operand < padFill.size() ? padFill[operand] : 0.0; }
  // NaN equals NaN, so that a graph equals itself.
  friend bool operator==(const OperatorFacts& a, const OperatorFacts& b);
};

// The user's `shard` of an operator, as he wrote it: splits per dimension, or axis names per dimension ("dp,tp").
struct UserStrategy {
  bool byName = false;
  std::vector<Shape> inSplits, outSplits;
  std::vector<std::vector<std::string>> inNames, outNames;
  SourcePlace line;         // of the `shard` call
  bool isSearched = false;  // it is no word of the user, but a choice of mode auto
  friend bool operator==(const UserStrategy&, const UserStrategy&) = default;
};

// A value: result `index` of the operator `producer`, or argument `index` of the step.
struct GraphValue {
  static constexpr int64_t kArgument = -1;
  int64_t producer = kArgument;
  unsigned index = 0;

  bool isArgument() const { return producer == kArgument; }
  friend auto operator<=>(const GraphValue&, const GraphValue&) = default;
};

// An operator of an alternative. Operands are results of earlier operators of the body (`producer` is their index) or
// operands of the operator that it stands for (kArgument).
struct AlternativeOperator {
  OperatorFacts facts;
  std::vector<GraphValue> operands;
  std::vector<TensorType> results;
  std::optional<Phase> phase = {};  // none: that of the operator it stands for
  friend bool operator==(const AlternativeOperator&, const AlternativeOperator&) = default;
};

// Operators that may stand for another one: their rules allow splits that its own forbids, or it exists only to be
// expanded (OperatorFacts::mustExpand). Then results may have types of their own, as long as what reads them is
// expanded with it.
struct Alternative {
  std::vector<AlternativeOperator> body;
  std::vector<GraphValue> results;  // one for each result of the operator
  friend bool operator==(const Alternative&, const Alternative&) = default;
};

// In place of a recompute scope: the operator runs again, whoever reads it (Tensor::recomputed).
inline constexpr int64_t kRecomputedAlone = -1;

struct GraphOperator {
  int64_t id = 0;
  OperatorFacts facts;
  std::string name;  // the user's; may be empty
  Phase phase = Phase::kForward;
  std::optional<int64_t> forward;     // the operator that it is the gradient of
  std::optional<int64_t> prologueOf;  // it is a copy in the prologue of this operator
  std::string gradientOf;             // the parameter whose gradient it finishes
  std::optional<int64_t> userStage;
  std::optional<int64_t> alike;  // the operator of an earlier layer, or this, that is split as it is (markAlike)
  std::optional<int64_t> recomputeScope;  // its number, or kRecomputedAlone
  std::optional<UserStrategy> strategy;
  std::string constraint;  // of `constrain`: the layout asked for
  SourcePlace line;
  std::vector<GraphValue> operands;
  std::vector<TensorType> results;
  std::vector<Alternative> alternatives;

  // The user's name, else the kind.
  const std::string& label() const { return name.empty() ? facts.kind : name; }
  friend bool operator==(const GraphOperator&, const GraphOperator&) = default;
};

struct GraphArgument {
  ArgumentKind kind = ArgumentKind::kInput;
  std::string name;
  TensorType type;
  int64_t batchDim = 0;  // of an input; -1: none of its dimensions is the batch
  std::string layout;    // asked for on the argument itself; "" none
  SourcePlace line;

  // Does the batch, more than one row, lie in a dimension of it?
  bool hasBatch() const;
  friend bool operator==(const GraphArgument&, const GraphArgument&) = default;
};

struct GraphResult {
  GraphValue value;
  std::optional<unsigned> updates;  // the argument whose new value it is
  friend bool operator==(const GraphResult&, const GraphResult&) = default;
};

struct ProgramGraph {
  std::vector<GraphArgument> arguments;
  std::vector<GraphOperator> operators;  // an operator reads arguments and results of those before it
  std::vector<GraphResult> results;
  int64_t nextId = 0;  // of the next operator that a rewrite makes
  SourcePlace line;    // of the step
  friend bool operator==(const ProgramGraph&, const ProgramGraph&) = default;

  // Does any operator run in the backward pass?
  bool trains() const;
};

}  // namespace weft
