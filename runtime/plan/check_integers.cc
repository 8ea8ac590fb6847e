#include "runtime/plan/check_integers.h"

#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "runtime/base/status.h"
#include "runtime/plan/limits.h"

namespace weft {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

struct Range {
  int64_t least = 0;
  int64_t most = kMaxPlanInteger;
};

// Origins and starts of slices may lie before the tensor, if only in a sum with others.
constexpr Range kAnySign = {-kMaxPlanInteger, kMaxPlanInteger};
// A column of the rank table, or none.
constexpr Range kColumn = {-1, kMaxPlanInteger};
// A year. Prices are added up over the instructions of a step.
constexpr double kMaxSeconds = 3.2e7;

// The fields whose range is another than that of all others.
const std::map<std::string, Range>& rangesOfFields() {
  static const std::map<std::string, Range> ranges = {
      {"weft.plan.RankTable.values", kAnySign},          {"weft.plan.Scalar.immediate", kAnySign},
      {"weft.plan.Scalar.micro_batch_factor", kAnySign}, {"weft.plan.Scalar.column", kColumn},
      {"weft.plan.Collective.source_column", kColumn},   {"weft.plan.Attribute.integer", kAnySign},
      {"weft.plan.Attribute.Integers.values", kAnySign}, {"weft.plan.Instruction.flops", {0, kMaxFlops}},
      {"weft.plan.Function.stage", {0, kMaxRanks - 1}},  {"weft.plan.Region.stage", {0, kMaxRanks - 1}},
  };
  return ranges;
}

// Attributes of kernels that are only hashed or compared with data: every integer is one.
bool takesAnyInteger(const std::string& attribute) {
  static const std::set<std::string> names = {"seed", "ignore_index"};
  return names.count(attribute) > 0;
}

class Walker {
 public:
  // What is wrong, beginning with the path of the field; nothing where all is right.
  std::optional<std::string> walk(const Message& message) {
    for (const Field& field : fieldsOf(message.GetDescriptor())) {
      std::optional<std::string> wrong = visit(message, field);
      if (wrong.has_value()) {
        return wrong;
      }
    }
    return std::nullopt;
  }

 private:
  struct Field {
    const FieldDescriptor* field = nullptr;
    Range range;
  };

  // The fields of a message that hold numbers or messages.
  const std::vector<Field>& fieldsOf(const Descriptor* descriptor) {
    const auto [it, added] = fields_.try_emplace(descriptor);
    for (int i = 0; added && i < descriptor->field_count(); ++i) {
      const FieldDescriptor* field = descriptor->field(i);
      const auto type = field->cpp_type();
      const bool seen = type == FieldDescriptor::CPPTYPE_INT64 || type == FieldDescriptor::CPPTYPE_MESSAGE ||
                        field->full_name() == "weft.plan.Collective.cost";
      if (seen) {
        const auto range = rangesOfFields().find(field->full_name());
        it->second.push_back({field, range == rangesOfFields().end() ? Range() : range->second});
      }
    }
    return it->second;
  }

  std::optional<std::string> visit(const Message& message, const Field& field) {
    switch (field.field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT64:
        return visitInteger(message, field);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return visitPrice(message, *field.field);
      default:
        return field.field->is_map() ? visitAttributes(static_cast<const plan::Instruction&>(message))
                                     : visitMessages(message, *field.field);
    }
  }

  static std::optional<std::string> visitInteger(const Message& message, const Field& field) {
    const auto* reflection = message.GetReflection();
    const std::string& name = field.field->name();
    if (!field.field->is_repeated()) {
      return compare(name, reflection->GetInt64(message, field.field), field.range);
    }
    const auto& values = reflection->GetRepeatedField<int64_t>(message, field.field);
    for (int i = 0; i < values.size(); ++i) {
      if (values[i] < field.range.least || values[i] > field.range.most) {
        return compare(absl::StrCat(name, "[", i, "]"), values[i], field.range);
      }
    }
    return std::nullopt;
  }

  static std::optional<std::string> compare(const std::string& name, int64_t value, const Range& range) {
    return value >= range.least && value <= range.most
               ? std::nullopt
               : std::optional(absl::StrCat(name, " is ", value, ", outside of ", range.least, " to ", range.most));
  }

  static std::optional<std::string> visitPrice(const Message& message, const FieldDescriptor& field) {
    const double seconds = message.GetReflection()->GetDouble(message, &field);
    return seconds >= 0 && seconds <= kMaxSeconds
               ? std::nullopt
               : std::optional(absl::StrCat(field.name(), " is ", seconds, " s, outside of 0 to ", kMaxSeconds, " s"));
  }

  std::optional<std::string> visitMessages(const Message& message, const FieldDescriptor& field) {
    const auto* reflection = message.GetReflection();
    if (!field.is_repeated()) {
      return reflection->HasField(message, &field) ? below(field.name(), walk(reflection->GetMessage(message, &field)))
                                                   : std::nullopt;
    }
    const int count = reflection->FieldSize(message, &field);
    for (int i = 0; i < count; ++i) {
      std::optional<std::string> wrong = walk(reflection->GetRepeatedMessage(message, &field, i));
      if (wrong.has_value()) {
        return below(absl::StrCat(field.name(), "[", i, "]"), wrong);
      }
    }
    return std::nullopt;
  }

  std::optional<std::string> visitAttributes(const plan::Instruction& instruction) {
    for (const auto& [name, attribute] : instruction.attributes()) {
      std::optional<std::string> wrong = takesAnyInteger(name) ? std::nullopt : walk(attribute);
      if (wrong.has_value()) {
        return below(absl::StrCat("attributes['", name, "']"), wrong);
      }
    }
    return std::nullopt;
  }

  static std::optional<std::string> below(const std::string& name, const std::optional<std::string>& wrong) {
    return wrong.has_value() ? std::optional(absl::StrCat(name, ".", *wrong)) : std::nullopt;
  }

  std::map<const Descriptor*, std::vector<Field>> fields_;
};

}  // namespace

absl::Status checkIntegers(const plan::Plan& plan) {
  const std::optional<std::string> wrong = Walker().walk(plan);
  return wrong.has_value() ? inconsistentPlan(*wrong) : absl::OkStatus();
}

}  // namespace weft
