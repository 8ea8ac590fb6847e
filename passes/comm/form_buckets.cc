// Joins all_reduces into buckets.
//
// Walking a function in order, an all_reduce joins the open bucket of its key (groups, reduction, element type) if the
// bucket may stand where this one stands: nothing in between reads a result of the bucket. Results move down to the
// last member; a bucket that something needs earlier is closed before that reader.

#include <map>

#include "ir/dist/dist.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "passes/comm/passes.h"

namespace weft {
namespace {

using namespace mlir;  // NOLINT

int64_t bytesOf(Value value) {
  auto tensor = cast<RankedTensorType>(value.getType());
  return tensor.getNumElements() * std::max<int64_t>(tensor.getElementTypeBitWidth() / 8, 1);
}

struct Bucket {
  SmallVector<ir::dist::AllReduceOp> members;
  int64_t bytes = 0;
};

using Key = std::tuple<const void*, const void*, const void*>;

Key keyOf(ir::dist::AllReduceOp op) {
  return {op.getGroups().getAsOpaquePointer(), op.getReduceAttr().getAsOpaquePointer(),
          cast<RankedTensorType>(op->getOperand(0).getType()).getElementType().getAsOpaquePointer()};
}

// Replaces the members by one op in the place of the last.
void close(Bucket& bucket) {
  if (bucket.members.size() > 1) {
    ir::dist::AllReduceOp last = bucket.members.back();
    OpBuilder builder(last);
    SmallVector<Value> operands;
    SmallVector<Type> types;
    double cost = 0;
    int64_t received = 0;
    for (ir::dist::AllReduceOp member : bucket.members) {
      operands.append(member->operand_begin(), member->operand_end());
      types.append(member->result_type_begin(), member->result_type_end());
      cost += member.getCost();
      received += member.getBytesReceived();
    }
    OperationState state(bucket.members.front()->getLoc(), ir::dist::AllReduceOp::getOperationName());
    state.addOperands(operands);
    state.addTypes(types);
    state.addAttributes(bucket.members.front()->getAttrs());
    state.attributes.set("cost", builder.getF64FloatAttr(cost));
    state.attributes.set("bytes_received", builder.getI64IntegerAttr(received));
    state.attributes.set("reason", builder.getStringAttr("bucket of " + std::to_string(bucket.members.size()) +
                                                         "; first: " + bucket.members.front().getReason().str()));
    state.attributes.set("nn.name", builder.getStringAttr("bucket of " + std::to_string(bucket.members.size())));
    Operation* joined = builder.create(state);
    unsigned next = 0;
    for (ir::dist::AllReduceOp member : bucket.members) {
      for (Value result : member->getResults()) {
        result.replaceAllUsesWith(joined->getResult(next++));
      }
      member->erase();
    }
  }
  bucket = {};
}

class FormBucketsPass : public PassWrapper<FormBucketsPass, OperationPass<ModuleOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FormBucketsPass)
  explicit FormBucketsPass(int64_t bucketBytes) : bucketBytes_(bucketBytes) {}

  StringRef getArgument() const override { return "weft-form-buckets"; }
  StringRef getDescription() const override { return "Join independent all_reduces into buckets"; }

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      hoistReductions(function.getBody().front());
      runOnBlock(function.getBody().front());
    }
  }

 private:
  // All_reduces move up to just after their operand, past everything that does not feed them; so those of function
  // arguments meet at the top.
  static void hoistReductions(Block& block) {
    SmallVector<ir::dist::AllReduceOp> reductions(block.getOps<ir::dist::AllReduceOp>());
    Operation* top = nullptr;
    for (ir::dist::AllReduceOp op : reductions) {
      const bool fromArguments = llvm::all_of(op->getOperands(), [](Value v) { return isa<BlockArgument>(v); });
      if (!fromArguments) {
        continue;
      }
      if (top == nullptr) {
        op->moveBefore(&block, block.begin());
      } else {
        op->moveAfter(top);
      }
      top = op;
    }
  }

  void runOnBlock(Block& block) {
    std::map<Key, Bucket> open;
    std::vector<Key> order;  // of opening: pointers as keys have no stable order
    for (Operation& op : llvm::make_early_inc_range(block)) {
      for (const Key& key : order) {
        if (readsMember(&op, open[key])) {
          close(open[key]);
        }
      }
      auto reduce = dyn_cast<ir::dist::AllReduceOp>(op);
      if (!reduce) {
        continue;
      }
      const Key key = keyOf(reduce);
      if (open.find(key) == open.end()) {
        order.push_back(key);
      }
      Bucket& bucket = open[key];
      if (bucket.bytes + bytesOf(reduce->getOperand(0)) > bucketBytes_) {
        close(bucket);
      }
      bucket.members.push_back(reduce);
      bucket.bytes += bytesOf(reduce->getOperand(0));
    }
  }

  static bool readsMember(Operation* op, const Bucket& bucket) {
    return llvm::any_of(bucket.members, [&](ir::dist::AllReduceOp member) {
      return llvm::any_of(op->getOperands(), [&](Value v) { return v.getDefiningOp() == member.getOperation(); });
    });
  }

  int64_t bucketBytes_;
};

}  // namespace

std::unique_ptr<Pass> createFormBucketsPass(int64_t bucketBytes) {
  return std::make_unique<FormBucketsPass>(bucketBytes);
}

}  // namespace weft
