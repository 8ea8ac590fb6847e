// Lies about calls of kernels: attributes, scalars, shapes, types, and data.
#include <cmath>
#include <limits>

#include "tests/runtime/hostile/hostile_plan.h"

namespace weft::hostile {
namespace {

using Ints = std::vector<int64_t>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kLarge = int64_t{1} << 47;

TensorSpec f32(const Ints& shape) {
  return {DType::kF32, shape};
}
TensorSpec i64(const Ints& shape) {
  return {DType::kI64, shape};
}

// Calls that are right; every one is then spoiled in the same ways.
std::vector<KernelCall> rightCalls() {
  const Ints pair = {1, 1};
  const Ints none = {0, 0};
  return {
      {"reshape", {f32({2, 3})}, {f32({6})}},
      {"transpose", {f32({2, 3})}, {f32({3, 2})}, {{"permutation", Ints{1, 0}}}},
      {"slice", {f32({4, 4})}, {f32({2, 2})}, {{"offsets", Ints{1, 2}}}},
      {"pad", {f32({2, 2})}, {f32({4, 4})}, {{"low", Ints{1, 2}}, {"value", 0.5}}},
      {"broadcast", {f32({3})}, {f32({2, 3})}},
      {"dynamic_slice", {f32({4, 4})}, {f32({2, 2})}, {}, {1, 2}},
      {"dynamic_update_slice", {f32({4, 4}), f32({2, 2})}, {f32({4, 4})}, {}, {1, 2}},
      {"concat", {f32({2, 3}), f32({1, 3})}, {f32({3, 3})}, {{"dim", int64_t{0}}}},
      {"fill", {}, {f32({4})}, {{"value", 1.5}}},
      {"iota", {}, {i64({4, 2})}, {{"dim", int64_t{0}}}, {5}},
      {"mask_pad", {f32({4, 2})}, {f32({4, 2})}, {{"dims", Ints{0}}, {"valid", Ints{3}}, {"fill", -kInfinity}}, {0}},
      {"accumulate", {f32({4}), f32({4})}, {f32({4})}, {}, {0}},
      {"contract_accumulate",
       {f32({3, 4}), f32({2, 3}), f32({2, 4})},
       {f32({3, 4})},
       {{"spec", std::string("k m, k n -> m n")}},
       {0}},
      {"random",
       {},
       {f32({2, 2})},
       {{"distribution", std::string("normal")},
        {"a", 0.0},
        {"b", 1.0},
        {"seed", INT64_MAX},
        {"key", int64_t{1}},
        {"global_shape", Ints{4, 2}}},
       {2, 0}},
      {"dropout",
       {f32({4}), i64({})},
       {f32({4})},
       {{"rate", 0.5}, {"seed", int64_t{3}}, {"key", int64_t{1}}, {"global_shape", Ints{8}}},
       {4}},
      {"embedding", {f32({4, 2}), i64({3})}, {f32({3, 2})}, {{"rows", int64_t{4}}}, {0}},
      {"embedding_grad", {i64({3}), f32({3, 2})}, {f32({4, 2})}, {}, {0}},
      {"softmax_cross_entropy", {f32({3, 4}), i64({3})}, {f32({3}), f32({3})}, {{"ignore_index", int64_t{-100}}}},
      {"softmax_cross_entropy_grad",
       {f32({3, 4}), i64({3}), f32({3}), f32({3})},
       {f32({3, 4})},
       {{"ignore_index", int64_t{-100}}},
       {0}},
      {"pick", {f32({3, 4}), i64({3})}, {f32({3})}, {}, {0}},
      {"pick_grad", {i64({3}), f32({3})}, {f32({3, 4})}, {}, {0}},
      {"gather", {f32({3, 4}), i64({3, 2})}, {f32({3, 2})}, {{"dim", int64_t{1}}, {"rows", int64_t{4}}}, {0}},
      {"scatter_add", {i64({3, 2}), f32({3, 2})}, {f32({3, 4})}, {{"dim", int64_t{1}}, {"rows", int64_t{4}}}, {0}},
      {"cumsum", {f32({3, 4})}, {f32({3, 4})}, {{"dim", int64_t{0}}, {"reverse", int64_t{1}}}},
      {"prod", {f32({3, 4})}, {f32({3})}, {{"dim", int64_t{1}}}},
      {"prod_grad", {f32({3, 4}), f32({3})}, {f32({3, 4})}, {{"dim", int64_t{1}}}},
      {"argmax", {f32({3, 4})}, {{DType::kI32, {3}}}, {{"dim", int64_t{1}}}},
      {"sort",
       {f32({3, 4})},
       {f32({3, 2}), {DType::kI32, {3, 2}}},
       {{"count", int64_t{2}}, {"descending", int64_t{1}}}},
      {"flip", {f32({3, 4})}, {f32({3, 4})}, {{"dims", Ints{1}}}},
      {"log_softmax", {f32({2, 3})}, {f32({2, 3})}},
      {"leaky_relu", {f32({4})}, {f32({4})}, {{"slope", 0.5}}},
      {"conv2d", {f32({1, 2, 4, 4}), f32({3, 2, 3, 3})}, {f32({1, 3, 4, 4})}, {{"strides", pair}, {"paddings", pair}}},
      {"conv2d_input_grad",
       {f32({1, 3, 4, 4}), f32({3, 2, 3, 3})},
       {f32({1, 2, 4, 4})},
       {{"strides", pair}, {"paddings", pair}}},
      {"conv2d_weight_grad",
       {f32({1, 2, 4, 4}), f32({1, 3, 4, 4})},
       {f32({3, 2, 3, 3})},
       {{"strides", pair}, {"paddings", pair}}},
      {"max_pool2d",
       {f32({1, 1, 4, 4})},
       {f32({1, 1, 2, 2})},
       {{"window", Ints{2, 2}}, {"strides", Ints{2, 2}}, {"paddings", none}}},
      {"max_pool2d_grad",
       {f32({1, 1, 4, 4}), f32({1, 1, 2, 2})},
       {f32({1, 1, 4, 4})},
       {{"window", Ints{2, 2}}, {"strides", Ints{2, 2}}, {"paddings", none}}},
      {"avg_pool2d",
       {f32({1, 1, 4, 4})},
       {f32({1, 1, 2, 2})},
       {{"window", Ints{2, 2}}, {"strides", Ints{2, 2}}, {"paddings", none}}},
      {"attention",
       {f32({1, 2, 3, 4}), f32({1, 2, 5, 4}), f32({1, 2, 5, 4})},
       {f32({1, 2, 3, 4}), f32({1, 2, 3})},
       {{"scale", 0.5}, {"causal", int64_t{1}}},
       {0}},
      {"matmul", {f32({2, 3}), f32({3, 4})}, {f32({2, 4})}},
      {"contract", {f32({2, 3}), f32({3, 4})}, {f32({2, 4})}, {{"spec", std::string("m k, k n -> m n")}}},
      {"sum", {f32({2, 3})}, {f32({2})}, {{"dims", Ints{1}}}},
      {"mean", {f32({2, 3})}, {f32({2})}, {{"dims", Ints{1}}, {"count", int64_t{3}}}},
      {"max", {f32({2, 3})}, {f32({2})}, {{"dims", Ints{1}}}},
      {"softmax", {f32({2, 3})}, {f32({2, 3})}, {{"dim", int64_t{1}}}},
      {"layer_norm", {f32({2, 3}), f32({3}), f32({3})}, {f32({2, 3}), f32({2}), f32({2})}, {{"epsilon", 1e-5}}},
      {"channel_sum", {f32({4, 2, 3})}, {f32({2, 2})}},
      {"channel_affine", {f32({4, 2, 3}), f32({2, 2}), f32({2, 2})}, {f32({4, 2, 3})}},
      {"sgd", {f32({4}), f32({4}), f32({4}), f32({})}, {f32({4}), f32({4})}, {{"momentum", 0.5}}},
      {"rms_direction", {f32({4}), f32({4})}, {f32({4}), f32({4})}, {{"gain", 0.5}}},
      {"descend", {f32({4}), f32({4}), f32({}), f32({})}, {f32({4})}, {{"weight_decay", 0.5}}},
      {"select", {{DType::kBool, {4}}, f32({4}), f32({4})}, {f32({4})}},
      {"compare", {f32({4}), f32({4})}, {{DType::kBool, {4}}}, {{"predicate", std::string("lt")}}},
      {"cast", {f32({4})}, {i64({4})}},
      {"add", {f32({2, 3}), f32({3})}, {f32({2, 3})}},
      {"all_finite", {f32({4})}, {{DType::kBool, {}}}},
      {"gelu", {f32({4})}, {f32({4})}, {{"approximate", std::string("none")}}},
  };
}

class Cases {
 public:
  void add(const std::string& name, const std::string& field, const KernelCall& call, bool mayRun = false,
           const std::string& says = "") {
    cases_.push_back({call.kernel + ": " + name, field, planOf(call), says.empty() ? call.kernel : says, mayRun});
  }
  void add(const Case& made) { cases_.push_back(made); }
  std::vector<Case> take() { return std::move(cases_); }

 private:
  std::vector<Case> cases_;
};

void spoilOperands(Cases& c, const KernelCall& right) {
  if (!right.inputs.empty()) {
    KernelCall call = right;
    call.inputs.pop_back();
    c.add("an input too few", "inputs", call, right.kernel == "concat");
    call = right;
    call.inputs[0].shape.insert(call.inputs[0].shape.begin(), 1);
    c.add("one more dimension", "buffers.shape", call, true);
    call = right;
    call.inputs[0].shape.assign(call.inputs[0].shape.size(), 0);
    c.add("an empty input", "buffers.shape", call, true);
    call = right;
    call.inputs[0].type = DType::kF16;
    c.add("another type", "buffers.type", call, true);
  }
  KernelCall call = right;
  call.inputs.push_back(f32({1}));
  c.add("an input too many", "inputs", call);
  call = right;
  call.outputs.pop_back();
  c.add("an output too few", "outputs", call);
  call = right;
  call.outputs.push_back(f32({1}));
  c.add("an output too many", "outputs", call);
  call = right;
  call.outputs[0].shape.assign(call.outputs[0].shape.size(), 7);
  c.add("a larger output", "buffers.shape", call, true);
  call = right;
  call.scalars.push_back(0);
  c.add("a scalar too many", "scalars", call);
}

void spoilAttributes(Cases& c, const KernelCall& right) {
  for (const auto& [name, value] : right.attributes) {
    const std::string field = "attributes['" + name + "']";
    KernelCall call = right;
    call.attributes.erase(name);
    c.add("no " + name, field, call, true);
    call.attributes[name] = std::string("seven");
    c.add(name + " as another text", field, call);
    call.attributes[name] = std::vector<double>{0.5};
    c.add(name + " as reals", field, call);
    if (const auto* list = std::get_if<Ints>(&value)) {
      for (const int64_t number : {kLarge, -kLarge, int64_t{-1}, int64_t{1} << 31}) {
        call.attributes[name] = Ints(list->size(), number);
        c.add(name + " all " + std::to_string(number), field, call, true);
      }
      call.attributes[name] = Ints();
      c.add(name + " without numbers", field, call, true);
      call.attributes[name] = Ints(40, 0);
      c.add(name + " of 40 numbers", field, call, true);
    } else if (std::holds_alternative<int64_t>(value)) {
      for (const int64_t number : {kLarge, -kLarge, int64_t{-1}}) {
        call.attributes[name] = number;
        c.add(name + " = " + std::to_string(number), field, call, true);
      }
    } else if (std::holds_alternative<double>(value)) {
      for (const double number : {kInfinity, -1e308, std::nan("")}) {
        call.attributes[name] = number;
        c.add(name + " = " + std::to_string(number).substr(0, 8), field, call, true);
      }
    }
  }
}

void spoilScalars(Cases& c, const KernelCall& right) {
  for (size_t i = 0; i < right.scalars.size(); ++i) {
    for (const int64_t number : {kLarge, -kLarge, int64_t{-1}}) {
      KernelCall call = right;
      call.scalars[i] = number;
      c.add("scalar " + std::to_string(i) + " = " + std::to_string(number), "scalars.immediate", call,
            right.kernel != "dynamic_slice" && right.kernel != "dynamic_update_slice");
    }
  }
  if (!right.scalars.empty()) {
    KernelCall call = right;
    call.scalars.clear();
    c.add("no scalars", "scalars", call);
  }
}

// Ids and labels from the data.
void addData(Cases& c) {
  for (const int64_t id : {INT64_MIN, int64_t{-1}, int64_t{4}, kLarge, INT64_MAX}) {
    const std::string text = std::to_string(id);
    c.add("id " + text, "buffers.data",
          {"embedding", {f32({4, 2}), i64({1})}, {f32({1, 2})}, {{"rows", int64_t{4}}}, {0}, {id}});
    c.add("label " + text, "buffers.data",
          {"softmax_cross_entropy",
           {f32({1, 4}), i64({1})},
           {f32({1}), f32({1})},
           {{"ignore_index", int64_t{7}}},
           {},
           {id}});
    c.add("label " + text + " from an origin", "buffers.data",
          {"pick", {f32({1, 4}), i64({1})}, {f32({1})}, {}, {-kLarge}, {id}}, true);
  }
  c.add("rows of more than the table", "attributes['rows']",
        {"embedding", {f32({4, 2}), i64({1})}, {f32({1, 2})}, {{"rows", kLarge}}, {0}, {kLarge - 1}}, true);
  c.add("no classes, all ignored", "buffers.shape",
        {"softmax_cross_entropy", {f32({1, 0}), i64({1})}, {f32({1}), f32({1})}, {{"ignore_index", int64_t{0}}}});
  c.add("more classes than columns", "attributes['rows']",
        {"softmax_cross_entropy",
         {f32({1, 4}), i64({1})},
         {f32({1}), f32({1})},
         {{"ignore_index", int64_t{7}}, {"rows", int64_t{9}}},
         {},
         {8}});
  c.add("the least integer as ignore_index", "attributes['ignore_index']",
        {"softmax_cross_entropy", {f32({1, 4}), i64({1})}, {f32({1}), f32({1})}, {{"ignore_index", INT64_MIN}}}, true);
}

// Numbers that only overflow together.
void addTogether(Cases& c) {
  c.add("offset + size wraps", "attributes['offsets']",
        {"slice", {f32({4, 4})}, {f32({2, 2})}, {{"offsets", Ints{INT64_MAX - 1, 0}}}}, false, "attributes['offsets']");
  c.add("low + size wraps", "attributes['low']",
        {"pad", {f32({2, 2})}, {f32({4, 4})}, {{"low", Ints{INT64_MAX, INT64_MAX}}}}, false, "attributes['low']");
  c.add("start + size wraps", "scalars.immediate", {"dynamic_slice", {f32({4})}, {f32({2})}, {}, {INT64_MAX - 1}},
        false, "immediate");
  c.add("a permutation with one dimension twice", "attributes['permutation']",
        {"transpose", {f32({2, 2})}, {f32({2, 2})}, {{"permutation", Ints{1, 1}}}});
  c.add("an empty permutation", "attributes['permutation']",
        {"transpose", {f32({2})}, {f32({})}, {{"permutation", Ints{}}}});
  c.add("a dimension twice", "attributes['dims']", {"sum", {f32({2, 3})}, {f32({2})}, {{"dims", Ints{1, 1}}}});
  c.add("a dimension twice", "attributes['dims']",
        {"mask_pad", {f32({4})}, {f32({4})}, {{"dims", Ints{0, 0}}, {"valid", Ints{1, 2}}, {"fill", 0.0}}, {0, 0}});
  c.add("counts nothing", "attributes['count']",
        {"mean", {f32({2, 3})}, {f32({2})}, {{"dims", Ints{1}}, {"count", int64_t{0}}}});
  c.add("a row of the image far outside", "attributes['paddings']",
        {"conv2d",
         {f32({1, 1, 1, 8}), f32({1, 1, 1, 1})},
         {f32({1, 1, 3, 8})},
         {{"strides", Ints{kLarge, 1}}, {"paddings", Ints{kLarge, 0}}}},
        true);
  c.add("a column of the image far outside", "attributes['paddings']",
        {"conv2d",
         {f32({1, 1, 8, 1}), f32({1, 1, 1, 1})},
         {f32({1, 1, 8, 3})},
         {{"strides", Ints{1, kLarge}}, {"paddings", Ints{0, kLarge}}}},
        true);
  c.add("a window around nothing", "buffers.shape",
        {"max_pool2d",
         {f32({1, 1, 0, 4})},
         {f32({1, 1, 1, 3})},
         {{"window", Ints{2, 2}}, {"strides", Ints{1, 1}}, {"paddings", Ints{1, 0}}}});
  c.add("a gradient around nothing", "buffers.shape",
        {"max_pool2d_grad",
         {f32({1, 1, 0, 4}), f32({1, 1, 1, 3})},
         {f32({1, 1, 0, 4})},
         {{"window", Ints{2, 2}}, {"strides", Ints{1, 1}}, {"paddings", Ints{1, 0}}}});
  c.add("a window of all numbers", "attributes['window']",
        {"avg_pool2d",
         {f32({1, 1, 1, 1})},
         {f32({1, 1, 1, 1})},
         {{"window", Ints{kLarge - 1, kLarge - 1}},
          {"strides", Ints{kLarge, kLarge}},
          {"paddings", Ints{kLarge / 2 - 1, kLarge / 2 - 1}}}},
        true);
  c.add("a global shape that overflows", "attributes['global_shape']",
        {"random",
         {},
         {f32({1, 1})},
         {{"distribution", std::string("uniform")},
          {"a", 0.0},
          {"b", 1.0},
          {"seed", int64_t{0}},
          {"key", int64_t{1}},
          {"global_shape", Ints{kLarge, kLarge}}},
         {0, 0}});
  c.add("a seed of 64 bits", "attributes['seed']",
        {"random",
         {},
         {f32({2})},
         {{"distribution", std::string("uniform")},
          {"a", 0.0},
          {"b", 1.0},
          {"seed", INT64_MIN},
          {"key", int64_t{1}},
          {"global_shape", Ints{2}}},
         {kLarge}},
        true);
  c.add("infinity as an integer", "attributes['value']", {"fill", {}, {i64({2})}, {{"value", kInfinity}}}, true);
  c.add("no number as an integer", "attributes['value']", {"fill", {}, {{DType::kI32, {2}}}, {{"value", std::nan("")}}},
        true);
  for (const char* spec : {"", "m k", "m k, k n", "m m, k n -> m n", "m k, k n -> m q", "m k, k n -> m",
                           "a b c, k n -> m n", ",->", "-> m n, k"}) {
    c.add(std::string("spec '") + spec + "'", "attributes['spec']",
          {"contract", {f32({2, 3}), f32({3, 4})}, {f32({2, 4})}, {{"spec", std::string(spec)}}});
  }
  c.add("a spec of a million letters", "attributes['spec']",
        {"contract", {f32({2, 3}), f32({3, 4})}, {f32({2, 4})}, {{"spec", std::string(2'000'000, 'k')}}});
  c.add("step 0", "buffers.data",
        {"adam", {f32({2}), f32({2}), f32({2}), f32({2}), f32({}), i64({})}, {f32({2}), f32({2}), f32({2})}});
  c.add("step 0 of a direction", "buffers.data",
        {"adam_direction", {f32({2}), f32({2}), f32({2}), i64({})}, {f32({2}), f32({2}), f32({2})}});
  c.add("sums that wrap around", "buffers.data",
        {"sum", {i64({2})}, {i64({})}, {{"dims", Ints{0}}}, {}, {INT64_MAX, INT64_MAX}}, true);
  c.add("a product that wraps around", "buffers.data",
        {"mul", {i64({}), i64({2})}, {i64({2})}, {}, {}, {INT64_MIN, INT64_MAX}}, true);
  c.add("the least integer", "buffers.data", {"neg", {i64({1})}, {i64({1})}, {}, {}, {INT64_MIN}}, true);
  KernelCall scratch = {"conv2d",
                        {f32({1, 64, 64, 64}), f32({64, 64, 9, 9})},
                        {f32({1, 64, 56, 56})},
                        {{"strides", Ints{1, 1}}, {"paddings", Ints{0, 0}}}};
  Case small = {"conv2d: too little scratch memory", "memory.regions.bytes", planOf(scratch), "workspace"};
  for (plan::Region& region : *small.plan.mutable_memory()->mutable_regions()) {
    if (region.memory() == plan::WORKSPACE) {
      small.plan.mutable_memory()->set_peak_bytes(small.plan.memory().peak_bytes() - region.bytes());
      region.set_bytes(0);
    }
  }
  c.add(small);
}

}  // namespace

std::vector<Case> kernelCases() {
  Cases cases;
  for (const KernelCall& right : rightCalls()) {
    cases.add("right", "nothing", right, true);
    spoilOperands(cases, right);
    spoilAttributes(cases, right);
    spoilScalars(cases, right);
  }
  addData(cases);
  addTogether(cases);
  return cases.take();
}

}  // namespace weft::hostile
