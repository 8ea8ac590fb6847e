#include "tests/fuzz/plan_mutator.h"

#include <limits>

namespace weft::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// How likely the walk goes on below a message field, in percent.
constexpr unsigned kDescend = 85;

const std::vector<double>& reals() {
  static const std::vector<double> kReals = {0,
                                             -0.0,
                                             1,
                                             -1,
                                             0.5,
                                             1e-300,
                                             1e300,
                                             -1e18,
                                             std::numeric_limits<double>::infinity(),
                                             -std::numeric_limits<double>::infinity(),
                                             std::numeric_limits<double>::quiet_NaN()};
  return kReals;
}

const std::vector<std::string>& texts() {
  static const std::vector<std::string> kTexts = {"",       "matmul",    "contract", "add",     "relu", "slice",
                                                  "pad",    "reshape",   "concat",   "reduce",  "all",  "transpose",
                                                  "gather", "scatter",   "one_hot",  "convert", "copy", "dynamic_slice",
                                                  "{}",     "{\"a\":1}", "h0.fc",    "\x01"};
  return kTexts;
}

// One field of one message; `index` is -1 unless it is repeated.
class Field {
 public:
  Field(Message& message, const FieldDescriptor* field, int index)
      : message_(message), reflection_(*message.GetReflection()), field_(field), index_(index) {}

  void change(Mutator& mutator) {
    switch (field_->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
      case FieldDescriptor::CPPTYPE_INT64:
      case FieldDescriptor::CPPTYPE_UINT32:
      case FieldDescriptor::CPPTYPE_UINT64:
        return setInteger(mutator.edge(integer()));
      case FieldDescriptor::CPPTYPE_DOUBLE:
      case FieldDescriptor::CPPTYPE_FLOAT:
        return setReal(mutator.oneOf(reals()));
      case FieldDescriptor::CPPTYPE_BOOL:
        return setBool(mutator.chance(50));
      case FieldDescriptor::CPPTYPE_ENUM:
        // One that has no name, too.
        return setEnum(static_cast<int>(mutator.below(field_->enum_type()->value_count() + 1)));
      case FieldDescriptor::CPPTYPE_STRING:
        return setText(changedText(mutator));
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return part().Clear();
    }
  }

  Message& part() {
    return index_ < 0 ? *reflection_.MutableMessage(&message_, field_)
                      : *reflection_.MutableRepeatedMessage(&message_, field_, index_);
  }

  // Of an integer field, whatever its width.
  int64_t integer() const {
    switch (field_->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return index_ < 0 ? reflection_.GetInt32(message_, field_)
                          : reflection_.GetRepeatedInt32(message_, field_, index_);
      case FieldDescriptor::CPPTYPE_INT64:
        return index_ < 0 ? reflection_.GetInt64(message_, field_)
                          : reflection_.GetRepeatedInt64(message_, field_, index_);
      case FieldDescriptor::CPPTYPE_UINT32:
        return index_ < 0 ? reflection_.GetUInt32(message_, field_)
                          : reflection_.GetRepeatedUInt32(message_, field_, index_);
      default:
        return static_cast<int64_t>(index_ < 0 ? reflection_.GetUInt64(message_, field_)
                                               : reflection_.GetRepeatedUInt64(message_, field_, index_));
    }
  }

  void setInteger(int64_t value) {
    switch (field_->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return set(&Reflection::SetInt32, &Reflection::SetRepeatedInt32, static_cast<int32_t>(value));
      case FieldDescriptor::CPPTYPE_INT64:
        return set(&Reflection::SetInt64, &Reflection::SetRepeatedInt64, value);
      case FieldDescriptor::CPPTYPE_UINT32:
        return set(&Reflection::SetUInt32, &Reflection::SetRepeatedUInt32, static_cast<uint32_t>(value));
      default:
        return set(&Reflection::SetUInt64, &Reflection::SetRepeatedUInt64, static_cast<uint64_t>(value));
    }
  }

 private:
  template <typename T>
  void set(void (Reflection::*one)(Message*, const FieldDescriptor*, T) const,
           void (Reflection::*entry)(Message*, const FieldDescriptor*, int, T) const, T value) {
    index_ < 0 ? (reflection_.*one)(&message_, field_, value) : (reflection_.*entry)(&message_, field_, index_, value);
  }

  void setReal(double value) { set(&Reflection::SetDouble, &Reflection::SetRepeatedDouble, value); }
  void setBool(bool value) { set(&Reflection::SetBool, &Reflection::SetRepeatedBool, value); }
  void setEnum(int value) { set(&Reflection::SetEnumValue, &Reflection::SetRepeatedEnumValue, value); }
  void setText(std::string value) { set(&Reflection::SetString, &Reflection::SetRepeatedString, std::move(value)); }

  std::string changedText(Mutator& mutator) const {
    const std::string now =
        index_ < 0 ? reflection_.GetString(message_, field_) : reflection_.GetRepeatedString(message_, field_, index_);
    // The decisions record is text with a form of its own.
    return now.size() > 64 && mutator.chance(80) ? mutateText(now, texts(), mutator) : mutator.oneOf(texts());
  }

  Message& message_;
  const Reflection& reflection_;
  const FieldDescriptor* field_;
  int index_;
};

// A list changes as a whole: an entry more, one fewer, two exchanged, one in the place of another.
void changeList(Message& message, const FieldDescriptor* field, Mutator& mutator) {
  const Reflection& reflection = *message.GetReflection();
  const int count = reflection.FieldSize(message, field);
  const int a = static_cast<int>(mutator.below(count));
  const int b = static_cast<int>(mutator.below(count));
  const bool isMessage = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  switch (count == 0 ? 3 : mutator.below(5)) {
    case 0:
      return reflection.SwapElements(&message, field, a, b);
    case 1:
      reflection.SwapElements(&message, field, a, count - 1);
      return reflection.RemoveLast(&message, field);
    case 2:
      return reflection.ClearField(&message, field);
    case 3:
      if (isMessage) {
        Message* added = reflection.AddMessage(&message, field);
        if (count > 0) {
          added->CopyFrom(reflection.GetRepeatedMessage(message, field, a));
        }
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
        reflection.AddInt64(&message, field, mutator.edge(count));
      }
      return;
    default:
      if (isMessage && a != b) {
        reflection.MutableRepeatedMessage(&message, field, a)
            ->CopyFrom(reflection.GetRepeatedMessage(message, field, b));
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
        Field(message, field, a).setInteger(Field(message, field, b).integer());
      }
  }
}

// A number becomes that of another entry of the list the message stands in: "neighbor" where there is one.
bool takeFromNeighbor(Message& message, const Message* neighbor, const FieldDescriptor* field) {
  const bool integer =
      field->cpp_type() == FieldDescriptor::CPPTYPE_INT64 || field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32;
  if (neighbor == nullptr || !integer || field->is_repeated()) {
    return false;
  }
  Field(message, field, -1).setInteger(Field(const_cast<Message&>(*neighbor), field, -1).integer());
  return true;
}

void changeBelow(Message& message, const Message* neighbor, Mutator& mutator) {
  const google::protobuf::Descriptor& descriptor = *message.GetDescriptor();
  const Reflection& reflection = *message.GetReflection();
  const FieldDescriptor* field = descriptor.field(static_cast<int>(mutator.below(descriptor.field_count())));
  const bool isMessage = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  if (field->is_repeated()) {
    const int count = reflection.FieldSize(message, field);
    if (count == 0 || !mutator.chance(kDescend)) {
      return changeList(message, field, mutator);
    }
    const int index = static_cast<int>(mutator.below(count));
    if (!isMessage) {
      return Field(message, field, index).change(mutator);
    }
    const int other = static_cast<int>(mutator.below(count));
    return changeBelow(*reflection.MutableRepeatedMessage(&message, field, index),
                       other == index ? nullptr : &reflection.GetRepeatedMessage(message, field, other), mutator);
  }
  if (mutator.chance(20) && takeFromNeighbor(message, neighbor, field)) {
    return;
  }
  // Of several forms that a field can have (oneof), the one that is there is taken most often.
  const bool absent = isMessage && !reflection.HasField(message, field);
  if (absent && !mutator.chance(10)) {
    return changeBelow(message, neighbor, mutator);
  }
  return isMessage && mutator.chance(95) ? changeBelow(Field(message, field, -1).part(), nullptr, mutator)
                                         : Field(message, field, -1).change(mutator);
}

}  // namespace

void changeOneField(plan::Plan& plan, Mutator& mutator) {
  // Most of what can be wrong with a plan of several submeshes is in them.
  const bool inSubmesh = plan.submeshes_size() > 0 && mutator.chance(70);
  plan::Plan& changed =
      inSubmesh ? *plan.mutable_submeshes(static_cast<int>(mutator.below(plan.submeshes_size()))) : plan;
  changeBelow(changed, nullptr, mutator);
}

}  // namespace weft::fuzz
