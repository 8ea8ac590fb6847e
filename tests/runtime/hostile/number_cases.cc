// Every integer of a plan in turn.
#include <functional>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "runtime/plan/limits.h"
#include "tests/runtime/hostile/hostile_plan.h"

namespace weft::hostile {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// What may hold negative numbers.
bool mayBeNegative(const std::string& field) {
  static const std::set<std::string> fields = {"weft.plan.RankTable.values", "weft.plan.Scalar.immediate",
                                               "weft.plan.Scalar.micro_batch_factor"};
  return fields.count(field) > 0;
}

// Calls visit(message, field, place in a repeated field or -1, path) for every int64 and uint32.
using Visit = std::function<void(Message&, const FieldDescriptor&, int, const std::string&)>;

void forEachNumber(Message& message, const std::string& prefix, const Visit& visit) {
  const auto* descriptor = message.GetDescriptor();
  const auto* reflection = message.GetReflection();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor& field = *descriptor->field(i);
    const auto type = field.cpp_type();
    const bool number = type == FieldDescriptor::CPPTYPE_INT64 || type == FieldDescriptor::CPPTYPE_UINT32;
    const bool nested = type == FieldDescriptor::CPPTYPE_MESSAGE && !field.is_map();
    const int count = field.is_repeated() ? reflection->FieldSize(message, &field) : 1;
    for (int k = 0; (number || nested) && k < count; ++k) {
      const std::string path = absl::StrCat(prefix, field.name(), field.is_repeated() ? absl::StrCat("[", k, "]") : "");
      if (number) {
        visit(message, field, field.is_repeated() ? k : -1, path);
      } else if (field.is_repeated()) {
        forEachNumber(*reflection->MutableRepeatedMessage(&message, &field, k), path + ".", visit);
      } else if (reflection->HasField(message, &field)) {
        forEachNumber(*reflection->MutableMessage(&message, &field), path + ".", visit);
      }
    }
  }
}

void set(Message& message, const FieldDescriptor& field, int place, int64_t value) {
  const auto* reflection = message.GetReflection();
  const bool wide = field.cpp_type() == FieldDescriptor::CPPTYPE_INT64;
  if (wide) {
    place < 0 ? reflection->SetInt64(&message, &field, value)
              : reflection->SetRepeatedInt64(&message, &field, place, value);
  } else {
    reflection->SetUInt32(&message, &field, static_cast<uint32_t>(value));
  }
}

// A copy of the plan with one number changed.
plan::Plan changed(plan::Plan plan, const std::string& wanted, int64_t value) {
  forEachNumber(plan, "", [&](Message& message, const FieldDescriptor& field, int place, const std::string& path) {
    if (path == wanted) {
      set(message, field, place, value);
    }
  });
  return plan;
}

// The first and the last place of each field of a plan; the others are like them.
std::map<std::string, const FieldDescriptor*> placesOf(plan::Plan plan) {
  std::map<const FieldDescriptor*, std::pair<std::string, std::string>> ends;
  forEachNumber(plan, "", [&](Message&, const FieldDescriptor& field, int, const std::string& path) {
    const auto [it, added] = ends.try_emplace(&field, path, path);
    it->second.second = path;
  });
  std::map<std::string, const FieldDescriptor*> places;
  for (const auto& [field, paths] : ends) {
    places[paths.first] = field;
    places[paths.second] = field;
  }
  return places;
}

}  // namespace

std::vector<Case> numberCases() {
  std::vector<Case> cases;
  const std::vector<std::pair<std::string, plan::Plan>> plans = {
      {"whole", wholePlan()}, {"staged", stagedPlan()}, {"parted", boxedPlan()}};
  for (const auto& [name, plan] : plans) {
    for (const auto& [path, field] : placesOf(plan)) {
      const auto add = [&, &name = name, &plan = plan, &path = path](int64_t value, const std::string& says) {
        cases.push_back(
            {absl::StrCat(name, " ", path, "=", value), path, changed(plan, path, value), says, says.empty()});
      };
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32) {
        // Indices and numbers that need not count anything, such as a storage.
        add(INT64_C(0xffffffff), "");
        add(77, "");
        continue;
      }
      add(INT64_MAX, path);
      add(INT64_MIN, path);
      add(-1, mayBeNegative(field->full_name()) || path.ends_with("column") ? "" : path);
      // In the range of integers, and much too large for most.
      add(kMaxPlanInteger, "");
      add(int64_t{1} << 40, "");
    }
  }
  return cases;
}

std::vector<Case> allCases() {
  std::vector<Case> cases;
  for (const auto& list : {numberCases(), structureCases(), channelCases(), kernelCases()}) {
    cases.insert(cases.end(), list.begin(), list.end());
  }
  return cases;
}

}  // namespace weft::hostile
