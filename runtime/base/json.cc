#include "runtime/base/json.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/base/names.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

constexpr size_t kLongestShown = 60;
constexpr size_t kLongestReason = 160;

// "an object names 'a' twice"; empty where none stands twice.
std::string namedTwice(std::vector<std::string>& names) {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  return twice == names.end() ? "" : absl::StrCat("an object names '", *twice, "' twice");
}

// Follows the parser: what it refuses is not stored, so that hostile text costs no more memory than honest text.
class Limits {
 public:
  bool keeps(int depth, Json::parse_event_t event, const Json& parsed) {
    if (!refused_.empty()) {
      return false;
    }
    switch (event) {
      case Json::parse_event_t::object_start:
        names_.emplace_back();
        [[fallthrough]];
      case Json::parse_event_t::array_start:
        refuse(depth >= kMaxJsonDepth, "values are nested more than ", kMaxJsonDepth, " deep");
        break;
      case Json::parse_event_t::key:
        names_.back().push_back(parsed.get<std::string>());
        refuse(names_.back().size() > kMaxJsonNames, "an object has more than ", kMaxJsonNames, " names");
        break;
      case Json::parse_event_t::object_end:
        refused_ = namedTwice(names_.back());
        names_.pop_back();
        break;
      default:
        break;
    }
    return refused_.empty();
  }

  const std::string& refused() const { return refused_; }

 private:
  template <typename... Parts>
  void refuse(bool wrong, const Parts&... parts) {
    if (wrong) {
      refused_ = absl::StrCat(parts...);
    }
  }

  std::vector<std::vector<std::string>> names_;  // of the objects that are open
  std::string refused_;
};

absl::Status wrong(const Json& value, const std::string& where, const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrCat(where, ": found ", shownJson(value), ", expected ", expected));
}

// Is told what the parser meets; false ends it.
class IntegerEntries final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(int64_t value) override { return add(value); }
  bool number_unsigned(uint64_t value) override { return add(value); }
  bool number_float(double value, const std::string&) override { return add(value); }
  bool string(std::string& value) override { return add(value); }
  bool binary(Json::binary_t&) override { return add(nullptr); }  // none in text
  bool start_array(size_t) override { return add(Json::array()); }
  bool end_array() override { return true; }
  bool start_object(size_t) override {
    const bool first = !open_;
    open_ = true;
    return first || add(Json::object());
  }
  bool key(std::string& name) override {
    entries_.emplace_back(std::move(name), 0);
    return true;
  }
  bool end_object() override { return true; }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    status_ = absl::InvalidArgumentError("no JSON: " + jsonReason(error));
    return false;
  }

  absl::StatusOr<std::vector<std::pair<std::string, int64_t>>> take() {
    WEFT_RETURN_IF_ERROR(status_);
    std::vector<std::string> names;
    for (const auto& [name, value] : entries_) {
      names.push_back(name);
    }
    const std::string twice = namedTwice(names);
    return twice.empty() ? absl::StatusOr<std::vector<std::pair<std::string, int64_t>>>(std::move(entries_))
                         : absl::InvalidArgumentError(twice);
  }

 private:
  bool add(const Json& value) {
    if (!open_) {
      status_ = wrong(value, "it", "an object");
      return false;
    }
    const absl::StatusOr<int64_t> integer = jsonInteger(value, shownJson(entries_.back().first));
    status_ = integer.status();
    entries_.back().second = integer.value_or(0);
    return integer.ok();
  }

  bool open_ = false;
  std::vector<std::pair<std::string, int64_t>> entries_;
  absl::Status status_;
};

// Hears of the parser only what is wrong.
class SyntaxError final : public nlohmann::detail::json_sax_acceptor<Json> {
 public:
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) {
    reason_ = jsonReason(error);
    return false;
  }
  const std::string& reason() const { return reason_; }

 private:
  std::string reason_;
};

// Why `text` is no JSON; empty where it is. Without exceptions the parser that makes values does not say.
std::string syntaxErrorOf(const std::string& text) {
  SyntaxError error;
  Json::sax_parse(text, &error);
  return error.reason();
}

}  // namespace

absl::StatusOr<Json> parseJson(const std::string& text) {
  Limits limits;
  Json json = Json::parse(
      text, [&](int depth, Json::parse_event_t event, Json& parsed) { return limits.keeps(depth, event, parsed); },
      /*allow_exceptions=*/false);
  if (limits.refused().empty() && !json.is_discarded()) {
    return json;
  }
  const std::string error = syntaxErrorOf(text);
  return absl::InvalidArgumentError(error.empty() ? limits.refused() : "no JSON: " + error);
}

absl::StatusOr<std::vector<std::pair<std::string, int64_t>>> parseJsonIntegers(const std::string& text) {
  IntegerEntries entries;
  Json::sax_parse(text, &entries);
  return entries.take();
}

std::string jsonReason(const nlohmann::detail::exception& error) {
  const std::string message = error.what();
  std::string reason = message.substr(message.find("] ") + 2, kLongestReason);
  for (char& c : reason) {
    c = static_cast<uint8_t>(c) >= 0x20 && static_cast<uint8_t>(c) < 0x7F ? c : '?';
  }
  return reason;
}

std::string shownJson(const Json& value) {
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  return text.size() > kLongestShown ? text.substr(0, kLongestShown) + "..." : text;
}

absl::StatusOr<int64_t> jsonInteger(const Json& value, const std::string& where, IntegerRange range) {
  const bool large = value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{INT64_MAX};
  if (!value.is_number_integer() || large || value.get<int64_t>() < range.least || value.get<int64_t>() > range.most) {
    return wrong(value, where,
                 range.most == INT64_MAX ? absl::StrCat("an integer of at least ", range.least)
                                         : absl::StrCat("an integer from ", range.least, " to ", range.most));
  }
  return value.get<int64_t>();
}

absl::StatusOr<double> jsonReal(const Json& value, const std::string& where) {
  return value.is_number() && std::isfinite(value.get<double>()) ? absl::StatusOr<double>(value.get<double>())
                                                                 : wrong(value, where, "a finite number");
}

absl::StatusOr<std::string> jsonText(const Json& value, const std::string& where) {
  return value.is_string() ? absl::StatusOr<std::string>(value.get<std::string>()) : wrong(value, where, "a text");
}

absl::StatusOr<bool> jsonBool(const Json& value, const std::string& where) {
  return value.is_boolean() ? absl::StatusOr<bool>(value.get<bool>()) : wrong(value, where, "true or false");
}

absl::StatusOr<const Json*> jsonList(const Json& value, const std::string& where) {
  return value.is_array() ? absl::StatusOr<const Json*>(&value) : wrong(value, where, "a list");
}

absl::StatusOr<const Json*> jsonMap(const Json& value, const std::string& where) {
  return value.is_object() ? absl::StatusOr<const Json*>(&value) : wrong(value, where, "an object");
}

absl::StatusOr<JsonObject> JsonObject::of(const Json& value, std::string where) {
  WEFT_RETURN_IF_ERROR(jsonMap(value, where).status());
  return JsonObject(value, std::move(where));
}

std::string JsonObject::where(const std::string& name) const {
  return where_.empty() ? name : absl::StrCat(where_, ".", name);
}

absl::StatusOr<const Json*> JsonObject::any(const std::string& name) {
  asked_.insert(name);
  const auto found = value_->find(name);
  return found != value_->end() ? absl::StatusOr<const Json*>(&*found)
                                : absl::InvalidArgumentError(absl::StrCat(where(name), " is missing"));
}

absl::StatusOr<int64_t> JsonObject::integer(const std::string& name, IntegerRange range) {
  WEFT_ASSIGN_OR_RETURN(const Json* value, any(name));
  return jsonInteger(*value, where(name), range);
}

absl::StatusOr<std::string> JsonObject::text(const std::string& name) {
  WEFT_ASSIGN_OR_RETURN(const Json* value, any(name));
  return jsonText(*value, where(name));
}

absl::StatusOr<bool> JsonObject::boolean(const std::string& name) {
  WEFT_ASSIGN_OR_RETURN(const Json* value, any(name));
  return jsonBool(*value, where(name));
}

absl::StatusOr<const Json*> JsonObject::list(const std::string& name) {
  WEFT_ASSIGN_OR_RETURN(const Json* value, any(name));
  return jsonList(*value, where(name));
}

absl::StatusOr<const Json*> JsonObject::map(const std::string& name) {
  WEFT_ASSIGN_OR_RETURN(const Json* value, any(name));
  return jsonMap(*value, where(name));
}

absl::StatusOr<int64_t> JsonObject::integerOr(const std::string& name, int64_t otherwise, IntegerRange range) {
  asked_.insert(name);
  return has(name) ? integer(name, range) : otherwise;
}

absl::StatusOr<std::string> JsonObject::textOr(const std::string& name, const std::string& otherwise) {
  asked_.insert(name);
  return has(name) ? text(name) : otherwise;
}

absl::StatusOr<bool> JsonObject::booleanOr(const std::string& name, bool otherwise) {
  asked_.insert(name);
  return has(name) ? boolean(name) : otherwise;
}

absl::StatusOr<const Json*> JsonObject::listOr(const std::string& name) {
  asked_.insert(name);
  static const Json kEmpty = Json::array();
  return has(name) ? list(name) : &kEmpty;
}

absl::StatusOr<const Json*> JsonObject::mapOr(const std::string& name) {
  asked_.insert(name);
  static const Json kEmpty = Json::object();
  return has(name) ? map(name) : &kEmpty;
}

absl::Status JsonObject::finish() const {
  for (const auto& [name, value] : value_->items()) {
    if (asked_.count(name) == 0) {
      const std::string near = nearestName(name, {asked_.begin(), asked_.end()});
      return absl::InvalidArgumentError(absl::StrCat(where_.empty() ? "it" : where_, " has an unknown entry '", name,
                                                     "'",
                                                     near.empty() ? "" : absl::StrCat("; did you mean '", near, "'?")));
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
