// Joins collectives into buckets.
//
// A collective may stand anywhere between the last op that makes one of its operands and the first op that reads one of
// its results. So each one is an interval of the function, and a bucket is a point in the intervals of all its members.
// The fewest buckets come from taking, again and again, the collective that is needed first, the point just before that
// need, and everything of the same key (kind, groups, reduction, dimension, element type) whose operands exist by then.
// Nothing else moves. Places are looked up anew after every bucket, because a bucket may feed another collective.

#include <algorithm>

#include "ir/dist/dist.h"
#include "ir/layout/reshard.h"
#include "ir/program/program.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "passes/logical/request_attributes.h"

namespace weft {

#define GEN_PASS_DECL_FORMBUCKETSPASS  // its options
#define GEN_PASS_DEF_FORMBUCKETSPASS
#include "passes/generated/passes.h.inc"

namespace {

using namespace mlir;  // NOLINT: the file is about MLIR types throughout

// Reasons that a bucket spells out; the others are counted.
constexpr size_t kReasonsShown = 2;

using Members = SmallVector<Operation*>;

int64_t operandBytes(Operation* op) {
  int64_t bytes = 0;
  for (Value operand : op->getOperands()) {
    auto tensor = cast<RankedTensorType>(operand.getType());
    bytes += tensor.getNumElements() * std::max<int64_t>(tensor.getElementTypeBitWidth() / 8, 1);
  }
  return bytes;
}

bool sameKey(Operation* a, Operation* b) {
  auto same = [&](const char* name) { return a->getAttr(name) == b->getAttr(name); };
  return a->getName() == b->getName() && same("groups") && same("reduce") && same("dim") &&
         getElementTypeOrSelf(a->getOperand(0)) == getElementTypeOrSelf(b->getOperand(0));
}

// The first op that reads a result; the end of the function if none does.
Operation* firstReader(Operation* op) {
  Operation* first = op->getBlock()->getTerminator();
  for (Operation* user : op->getUsers()) {
    if (user->isBeforeInBlock(first)) {
      first = user;
    }
  }
  return first;
}

bool operandsExistBefore(Operation* op, Operation* point) {
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    Operation* producer = operand.getDefiningOp();
    return producer == nullptr || producer->isBeforeInBlock(point);
  });
}

bool readsOneOf(Operation* op, const Members& members) {
  return llvm::any_of(op->getOperands(),
                      [&](Value operand) { return llvm::is_contained(members, operand.getDefiningOp()); });
}

StringAttr reasonOf(const Members& members, Builder& builder) {
  std::vector<std::string> reasons;
  for (Operation* member : members) {
    auto reason = member->getAttrOfType<StringAttr>("reason");
    if (reason && !reason.empty() && !llvm::is_contained(reasons, reason.str())) {
      reasons.push_back(reason.str());
    }
  }
  std::string text = "bucket of " + std::to_string(members.size());
  for (size_t i = 0; i < std::min(reasons.size(), kReasonsShown); ++i) {
    text += (i == 0 ? ": " : "; ") + reasons[i];
  }
  if (reasons.size() > kReasonsShown) {
    text += "; and " + std::to_string(reasons.size() - kReasonsShown) + " more";
  }
  return builder.getStringAttr(text);
}

// The names of what the bucket carries, for `weft explain`.
ArrayAttr namesOf(const Members& members, Builder& builder) {
  SmallVector<Attribute> names;
  for (Operation* member : members) {
    if (auto inner = member->getAttrOfType<ArrayAttr>(kMembersAttr)) {
      names.append(inner.begin(), inner.end());
    } else {
      names.push_back(builder.getStringAttr(labelOf(member)));
    }
  }
  return builder.getArrayAttr(names);
}

// A bucket pays the latency once: recomputes its cost from the sum of bytes, on the machine that localize priced it
// for.
void setPrice(Operation* bucket, const Members& members, const Machine& machine, Builder& builder) {
  int64_t received = 0;
  for (Operation* member : members) {
    auto bytes = member->getAttrOfType<IntegerAttr>("bytes_received");
    received += bytes ? bytes.getInt() : 0;
  }
  const bool whole = isa<ir::dist::AllReduceOp>(bucket);
  const auto groups = ir::dist::groupLists(bucket->getAttrOfType<ArrayAttr>("groups"));
  const double cost = collectiveCost(machine, whole ? CollectiveKind::kAllReduce : CollectiveKind::kReduceScatter,
                                     static_cast<int64_t>(groups.front().size()), received);
  bucket->setAttr("bytes_received", builder.getI64IntegerAttr(received));
  bucket->setAttr("cost", builder.getF64FloatAttr(cost));
}

// Replaces the members by one op just before `point`.
void join(Members members, Operation* point, const Machine& machine) {
  llvm::sort(members, [](Operation* a, Operation* b) { return a->isBeforeInBlock(b); });
  OpBuilder builder(point);
  SmallVector<Location> places;
  SmallVector<Value> operands;
  SmallVector<Type> types;
  for (Operation* member : members) {
    places.push_back(member->getLoc());
    operands.append(member->operand_begin(), member->operand_end());
    types.append(member->result_type_begin(), member->result_type_end());
  }
  OperationState state(builder.getFusedLoc(places), members.front()->getName());
  state.addOperands(operands);
  state.addTypes(types);
  state.addAttributes(members.front()->getAttrs());
  Operation* bucket = builder.create(state);
  bucket->setAttr("reason", reasonOf(members, builder));
  const ArrayAttr names = namesOf(members, builder);
  bucket->setAttr(kMembersAttr, names);
  bucket->setAttr(kNameAttr, builder.getStringAttr("bucket of " + std::to_string(names.size())));
  setPrice(bucket, members, machine, builder);
  unsigned next = 0;
  for (Operation* member : members) {
    for (Value result : member->getResults()) {
      result.replaceAllUsesWith(bucket->getResult(next++));
    }
    member->erase();
  }
}

// What joins `first` at `point`, needed soonest first, while it fits.
Members membersAt(Operation* first, Operation* point, ArrayRef<Operation*> open, int64_t bucketBytes) {
  Members members{first};
  int64_t bytes = operandBytes(first);
  for (Operation* other : open) {
    if (other == first || !sameKey(first, other) || !operandsExistBefore(other, point) || readsOneOf(other, members) ||
        bytes + operandBytes(other) > bucketBytes) {
      continue;
    }
    members.push_back(other);
    bytes += operandBytes(other);
  }
  return members;
}

void formBuckets(Block& body, int64_t bucketBytes, const Machine& machine) {
  Members open;
  for (Operation& op : body) {
    if (isa<ir::dist::AllReduceOp, ir::dist::ReduceScatterOp>(op)) {
      open.push_back(&op);
    }
  }
  while (!open.empty()) {
    llvm::stable_sort(open, [](Operation* a, Operation* b) {
      Operation* ofA = firstReader(a);
      Operation* ofB = firstReader(b);
      return ofA == ofB ? a->isBeforeInBlock(b) : ofA->isBeforeInBlock(ofB);
    });
    Operation* first = open.front();
    Operation* point = firstReader(first);
    const Members members = membersAt(first, point, open, bucketBytes);
    llvm::erase_if(open, [&](Operation* op) { return llvm::is_contained(members, op); });
    if (members.size() > 1) {
      join(members, point, machine);
    }
  }
}

class FormBucketsPass : public impl::FormBucketsPassBase<FormBucketsPass> {
 public:
  using Base::Base;

  void runOnOperation() override {
    const FailureOr<Machine> machine = machineOf(getOperation());
    if (failed(machine)) {
      return signalPassFailure();
    }
    for (ModuleOp submesh : submeshesOf(getOperation())) {
      for (auto function : submesh.getOps<func::FuncOp>()) {
        formBuckets(function.getBody().front(), bucketBytes, *machine);
      }
    }
  }
};

}  // namespace
}  // namespace weft
