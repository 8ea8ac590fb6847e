#include "planner/graph/attributes_json.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

constexpr char kReal[] = "real";    // what JSON has no number for
constexpr char kReals[] = "reals";  // a list of reals

Json printAttribute(const Attribute& attribute) {
  if (const auto* real = std::get_if<double>(&attribute)) {
    return std::isfinite(*real) ? printReal(*real) : Json{{kReal, printReal(*real)}};
  }
  if (const auto* reals = std::get_if<std::vector<double>>(&attribute)) {
    Json list = Json::array();
    for (const double real : *reals) {
      list.push_back(printReal(real));
    }
    return {{kReals, list}};
  }
  if (const auto* integers = std::get_if<std::vector<int64_t>>(&attribute)) {
    return *integers;
  }
  if (const auto* integer = std::get_if<int64_t>(&attribute)) {
    return *integer;
  }
  return std::get<std::string>(attribute);
}

absl::StatusOr<Attribute> parseIntegers(const Json& list, const std::string& where) {
  std::vector<int64_t> integers;
  for (size_t i = 0; i < list.size(); ++i) {
    WEFT_ASSIGN_OR_RETURN(const int64_t integer,
                          jsonInteger(list[i], absl::StrCat(where, "[", i, "]"), IntegerRange()));
    integers.push_back(integer);
  }
  return Attribute(std::move(integers));
}

// {"real": ...} or {"reals": [...]}.
absl::StatusOr<Attribute> parseTyped(const Json& json, const std::string& where) {
  WEFT_ASSIGN_OR_RETURN(JsonObject object, JsonObject::of(json, where));
  Attribute attribute;
  if (object.has(kReals)) {
    std::vector<double> reals;
    WEFT_ASSIGN_OR_RETURN(const Json* list, object.list(kReals));
    for (size_t i = 0; i < list->size(); ++i) {
      WEFT_ASSIGN_OR_RETURN(const double real, parseReal((*list)[i], absl::StrCat(object.where(kReals), "[", i, "]")));
      reals.push_back(real);
    }
    attribute = std::move(reals);
  } else {
    WEFT_ASSIGN_OR_RETURN(const Json* value, object.any(kReal));
    WEFT_ASSIGN_OR_RETURN(attribute, parseReal(*value, object.where(kReal)));
  }
  WEFT_RETURN_IF_ERROR(object.finish());
  return attribute;
}

absl::StatusOr<Attribute> parseAttribute(const Json& json, const std::string& where) {
  if (json.is_object()) {
    return parseTyped(json, where);
  }
  if (json.is_array()) {
    return parseIntegers(json, where);
  }
  if (json.is_string()) {
    return Attribute(json.get<std::string>());
  }
  if (json.is_number_float()) {
    WEFT_ASSIGN_OR_RETURN(const double real, jsonReal(json, where));
    return Attribute(real);
  }
  if (json.is_number_integer()) {
    WEFT_ASSIGN_OR_RETURN(const int64_t integer, jsonInteger(json, where, IntegerRange()));
    return Attribute(integer);
  }
  return absl::InvalidArgumentError(absl::StrCat(where, ": found ", shownJson(json),
                                                 ", expected a number, a text, a list of integers, ",
                                                 R"({"real": "inf"} or {"reals": [0.5]})"));
}

}  // namespace

Json printReal(double value) {
  if (std::isfinite(value)) {
    return value;
  }
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

absl::StatusOr<double> parseReal(const Json& json, const std::string& where) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (json.is_number()) {
    return jsonReal(json, where);
  }
  for (const double value : {kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
    if (json == printReal(value)) {
      return value;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": found ", shownJson(json), ", expected a number, \"inf\", \"-inf\" or \"nan\""));
}

Json printAttributes(const AttributeMap& attributes) {
  Json json = Json::object();
  for (const auto& [name, attribute] : attributes) {
    json[name] = printAttribute(attribute);
  }
  return json;
}

absl::StatusOr<AttributeMap> parseAttributes(const Json& json, const std::string& where) {
  AttributeMap attributes;
  for (const auto& [name, value] : json.items()) {
    WEFT_ASSIGN_OR_RETURN(Attribute attribute, parseAttribute(value, absl::StrCat(where, ".", name)));
    attributes.emplace(name, std::move(attribute));
  }
  return attributes;
}

}  // namespace weft
