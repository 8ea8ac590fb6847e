// Joins collectives into buckets: reads what may join in each function as plain data, asks bucketsOf(), and makes the
// buckets.

#include <algorithm>

#include "ir/dist/dist.h"
#include "ir/layout/reshard.h"
#include "ir/program/decision_attributes.h"
#include "ir/program/program.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "passes/logical/request_attributes.h"
#include "passes/plan/instruction_facts.h"
#include "planner/step/buckets.h"

namespace weft {

#define GEN_PASS_DECL_FORMBUCKETSPASS  // its options
#define GEN_PASS_DEF_FORMBUCKETSPASS
#include "passes/generated/passes.h.inc"

namespace {

using namespace mlir;  // NOLINT: the file is about MLIR types throughout

// Reasons that a bucket spells out; the others are counted.
constexpr size_t kReasonsShown = 2;

using Members = SmallVector<Operation*>;

bool sameKey(Operation* a, Operation* b) {
  auto same = [&](const char* name) { return a->getAttr(name) == b->getAttr(name); };
  return a->getName() == b->getName() && ir::dist::overOf(a) == ir::dist::overOf(b) && same("reduce") && same("dim") &&
         getElementTypeOrSelf(a->getOperand(0)) == getElementTypeOrSelf(b->getOperand(0));
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
  SmallVector<mlir::Attribute> names;
  for (Operation* member : members) {
    if (auto inner = member->getAttrOfType<ArrayAttr>(kMembersAttr)) {
      names.append(inner.begin(), inner.end());
    } else {
      names.push_back(builder.getStringAttr(labelOf(member)));
    }
  }
  return builder.getArrayAttr(names);
}

// What a bucket is priced for.
struct Links {
  const Machine& machine;
  const Mesh& mesh;
};

// A bucket pays the latency once: recomputes its cost from the sum of bytes.
void setPrice(Operation* bucket, const Members& members, const Links& links, Builder& builder) {
  int64_t received = 0;
  for (Operation* member : members) {
    auto bytes = member->getAttrOfType<IntegerAttr>("bytes_received");
    received += bytes ? bytes.getInt() : 0;
  }
  const CollectiveKind kind = isa<ir::dist::AllReduceOp>(bucket)   ? CollectiveKind::kAllReduce
                              : isa<ir::dist::AllGatherOp>(bucket) ? CollectiveKind::kAllGather
                                                                   : CollectiveKind::kReduceScatter;
  const GroupSpan span = spanOf(links.machine, links.mesh.ranks(), *ir::dist::axesOver(bucket, links.mesh));
  const Picoseconds cost = collectiveCost(links.machine, kind, span, received);
  bucket->setAttr("bytes_received", builder.getI64IntegerAttr(received));
  bucket->setAttr("cost", builder.getF64FloatAttr(inSeconds(cost)));
}

// Replaces the members by one op just before `point`.
Operation* join(const Members& members, Operation* point, const Links& links) {
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
  setPrice(bucket, members, links, builder);
  unsigned next = 0;
  for (Operation* member : members) {
    for (Value result : member->getResults()) {
      result.replaceAllUsesWith(bucket->getResult(next++));
    }
    member->erase();
  }
  return bucket;
}

// Positions of a function's ops, and what stands for them now.
struct Positions {
  std::vector<Operation*> ops;
  DenseMap<Operation*, int64_t> of;
};

Positions positionsIn(Block& body) {
  Positions positions;
  for (Operation& op : body) {
    positions.of[&op] = static_cast<int64_t>(positions.ops.size());
    positions.ops.push_back(&op);
  }
  return positions;
}

bool isTerminator(Operation* op) {
  return op->hasTrait<OpTrait::IsTerminator>();
}

bool isReturned(Operation* op) {
  return llvm::any_of(op->getUsers(), isTerminator);
}

bool mayJoin(Operation* op) {
  return isa<ir::dist::AllReduceOp, ir::dist::ReduceScatterOp>(op) ||
         (isa<ir::dist::AllGatherOp>(op) && (isReturned(op) || isa<BlockArgument>(op->getOperand(0))));
}

BucketLimit limitOf(Operation* op) {
  if (isa<ir::dist::AllGatherOp>(op)) {
    return isReturned(op) ? BucketLimit::kNone : BucketLimit::kLargest;
  }
  const bool addsUp = llvm::any_of(op->getUsers(), [](Operation* user) { return isa<ir::dist::AccumulateOp>(user); });
  const bool isOnlyReturned = llvm::all_of(op->getUsers(), isTerminator) && !isa<BlockArgument>(op->getOperand(0));
  const bool isKept = addsUp || isOnlyReturned;
  return isKept && isa<ir::dist::ReduceScatterOp>(op) ? BucketLimit::kQuarter : BucketLimit::kNone;
}

Reduction reductionOf(Operation* op, int key, const Positions& positions) {
  Reduction reduction{key, 0, positions.of.lookup(op)};
  for (Value operand : op->getOperands()) {
    reduction.bytes += tensorSpec(operand).bytes();
    if (Operation* producer = operand.getDefiningOp()) {
      reduction.producers.push_back(positions.of.lookup(producer));
    }
  }
  for (Value result : op->getResults()) {
    reduction.resultBytes += tensorSpec(result).bytes();
  }
  for (Operation* user : op->getUsers()) {
    reduction.readers.push_back(positions.of.lookup(user));
  }
  reduction.limit = limitOf(op);
  reduction.savesRoom = reduction.limit == BucketLimit::kQuarter || (isa<ir::dist::AllGatherOp>(op) && isReturned(op));
  if (reduction.readers.empty()) {
    reduction.readers.push_back(positions.of.lookup(op->getBlock()->getTerminator()));
  }
  return reduction;
}

std::vector<Reduction> reductionsIn(const Positions& positions) {
  std::vector<Reduction> reductions;
  Members keys;  // one op of each
  for (Operation* op : positions.ops) {
    if (mayJoin(op)) {
      auto* key = llvm::find_if(keys, [&](Operation* other) { return sameKey(op, other); });
      const int number = static_cast<int>(key - keys.begin());
      if (key == keys.end()) {
        keys.push_back(op);
      }
      reductions.push_back(reductionOf(op, number, positions));
    }
  }
  return reductions;
}

void formBuckets(Block& body, const BucketBytes& most, const Links& links) {
  Positions positions = positionsIn(body);
  const std::vector<Reduction> reductions = reductionsIn(positions);
  for (const Bucket& bucket : bucketsOf(reductions, most)) {
    Members members;
    for (const size_t index : bucket.members) {
      members.push_back(positions.ops[reductions[index].position]);
    }
    Operation* point = positions.ops[bucket.before];
    if (members.size() == 1) {
      members.front()->moveBefore(point);
      continue;
    }
    Operation* made = join(members, point, links);
    for (const size_t index : bucket.members) {
      positions.ops[reductions[index].position] = made;
    }
  }
}

LogicalResult checkAxes(ModuleOp submesh, const Mesh& mesh) {
  const WalkResult walked = submesh.walk([&](Operation* op) {
    return ir::dist::overOf(op) && failed(ir::dist::axesOver(op, mesh)) ? WalkResult::interrupt()
                                                                        : WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

class FormBucketsPass : public impl::FormBucketsPassBase<FormBucketsPass> {
 public:
  using Base::Base;

  void runOnOperation() override {
    const Decisions* decisions = decisionsOf(getOperation());
    const BucketBytes most = {bucketBytes, decisions == nullptr ? 0 : decisions->gatherBucket};
    const LogicalResult done = forEachSubmesh(getOperation(), [&](ModuleOp submesh, const Machine& machine) {
      const FailureOr<Mesh> mesh = meshOf(submesh);
      if (failed(mesh) || failed(checkAxes(submesh, *mesh))) {
        return failure();
      }
      for (auto function : submesh.getOps<func::FuncOp>()) {
        formBuckets(function.getBody().front(), most, {machine, *mesh});
      }
      return success();
    });
    if (failed(done)) {
      signalPassFailure();
    }
  }
};

}  // namespace
}  // namespace weft
