// JSON that comes from elsewhere.
//
//   WEFT_ASSIGN_OR_RETURN(const Json json, parseJson(text));
//   WEFT_ASSIGN_OR_RETURN(JsonObject entry, JsonObject::of(json, "operators[3]"));
//   WEFT_ASSIGN_OR_RETURN(const int64_t stage, entry.integer("stage", {0, 7}));
//   WEFT_RETURN_IF_ERROR(entry.finish());   // refuses what was not asked for
//
// The JSON library reports a wrong type by an exception, converts numbers that do not fit without a word, and copies
// and destroys nested values by recursion; here nesting is bounded and every value is checked where it is read. Errors
// name where the value stands, what was found and what was expected.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/numbers.h"

namespace weft {

using Json = nlohmann::ordered_json;

// Deeper nesting than this is refused, and so are more names in one object: no format of ours has either, and the
// library looks through all names of an object for each new one.
inline constexpr int kMaxJsonDepth = 32;
inline constexpr size_t kMaxJsonNames = 4096;

// Errors: where the text stops being JSON; a name that stands twice in one object; nesting or names beyond the limits.
absl::StatusOr<Json> parseJson(const std::string& text);

// The entries of an object of integers, in their order: of tables, which may have more names than parseJson takes.
// Errors: as of parseJson; a value that is no integer of at least 0.
absl::StatusOr<std::vector<std::pair<std::string, int64_t>>> parseJsonIntegers(const std::string& text);

// What the library says of a text that is no JSON, for an error message: without the name of its exception, which
// stands in front in brackets, cut where it is long, and '?' for what cannot be printed.
std::string jsonReason(const nlohmann::detail::exception& error);

// A value as it may stand in an error message: its text, cut where it is long.
std::string shownJson(const Json& value);

// Reads one value. `where` names it in errors.
absl::StatusOr<int64_t> jsonInteger(const Json& value, const std::string& where, IntegerRange range = {.least = 0});
absl::StatusOr<double> jsonReal(const Json& value, const std::string& where);  // finite
absl::StatusOr<std::string> jsonText(const Json& value, const std::string& where);
absl::StatusOr<bool> jsonBool(const Json& value, const std::string& where);
// An array; an object with entries of any name.
absl::StatusOr<const Json*> jsonList(const Json& value, const std::string& where);
absl::StatusOr<const Json*> jsonMap(const Json& value, const std::string& where);

// The value of a closed set whose name a text is. Errors list the names.
template <typename Enum, size_t kCount>
absl::StatusOr<Enum> jsonWord(const std::array<Enum, kCount>& values, std::string (*nameOf)(Enum),
                              const std::string& text, const std::string& where) {
  std::string names;
  for (const Enum value : values) {
    if (text == nameOf(value)) {
      return value;
    }
    names += (names.empty() ? "" : ", ") + nameOf(value);
  }
  return absl::InvalidArgumentError(where + ": found '" + text + "', expected one of " + names);
}

// An object with entries of known names.
class JsonObject {
 public:
  // The value must outlive the object. Error: it is none.
  static absl::StatusOr<JsonObject> of(const Json& value, std::string where);

  bool has(const std::string& name) const { return value_->contains(name); }
  // The path of an entry, for errors: "operators[3].stage".
  std::string where(const std::string& name) const;
  // Any value. Error: there is no entry of this name.
  absl::StatusOr<const Json*> any(const std::string& name);

  absl::StatusOr<int64_t> integer(const std::string& name, IntegerRange range = {.least = 0});
  absl::StatusOr<std::string> text(const std::string& name);
  absl::StatusOr<bool> boolean(const std::string& name);
  absl::StatusOr<const Json*> list(const std::string& name);
  absl::StatusOr<const Json*> map(const std::string& name);
  // Where there is no such entry: `otherwise`, an empty list, an empty object.
  absl::StatusOr<int64_t> integerOr(const std::string& name, int64_t otherwise, IntegerRange range = {.least = 0});
  absl::StatusOr<std::string> textOr(const std::string& name, const std::string& otherwise);
  absl::StatusOr<bool> booleanOr(const std::string& name, bool otherwise);
  absl::StatusOr<const Json*> listOr(const std::string& name);
  absl::StatusOr<const Json*> mapOr(const std::string& name);

  // Error: an entry that nothing asked for, with the nearest name that was.
  absl::Status finish() const;

 private:
  JsonObject(const Json& value, std::string where) : value_(&value), where_(std::move(where)) {}

  const Json* value_;
  std::string where_;
  std::set<std::string> asked_;
};

}  // namespace weft
