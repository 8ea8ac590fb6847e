#include "tools/analysis/lifetimes_csv.h"

#include <array>
#include <unordered_map>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/names.h"
#include "runtime/base/numbers.h"
#include "runtime/base/status.h"

namespace weft::tools {
namespace {

enum Column { kId, kLower, kUpper, kSize, kColumns };
const std::array<std::string, kColumns> kNames{"id", "lower", "upper", "size"};
// Sizes and their sum stay far from the end of an int64, so that rounding up to an alignment cannot overflow.
constexpr int64_t kMaxTotal = int64_t{1} << 60;

struct Field {
  std::string text;
  size_t column = 1;  // of its first character in the line, from 1
};

std::string shown(const std::string& text) {
  constexpr size_t kLongest = 40;
  const std::string cut = text.size() > kLongest ? text.substr(0, kLongest) + "..." : text;
  return absl::StrCat("'", absl::CHexEscape(cut), "'");
}

std::vector<Field> fieldsOf(const std::string& line) {
  std::vector<Field> fields;
  size_t begin = 0;
  while (true) {
    const size_t comma = std::min(line.find(',', begin), line.size());
    size_t first = begin;
    size_t last = comma;
    while (first < last && (line[first] == ' ' || line[first] == '\t')) {
      ++first;
    }
    while (last > first && (line[last - 1] == ' ' || line[last - 1] == '\t')) {
      --last;
    }
    fields.push_back({line.substr(first, last - first), first + 1});
    if (comma == line.size()) {
      return fields;
    }
    begin = comma + 1;
  }
}

// Length of the UTF-8 character at `at`, 0 if there is none or it is a control character.
size_t characterAt(const std::string& text, size_t at) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned lead = byte(at);
  const size_t length = lead < 0x80 ? 1 : lead >= 0xC2 && lead < 0xE0 ? 2 : (lead & 0xF0) == 0xE0 ? 3 : 4;
  if (lead < 0x20 || lead == 0x7F || (lead >= 0x80 && lead < 0xC2) || lead > 0xF4) {
    return 0;
  }
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) {
      return 0;
    }
  }
  // Overlong forms, surrogates, and what lies above U+10FFFF.
  const unsigned second = byte(at + 1);
  const bool wrong = (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
                     (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F);
  return wrong ? 0 : length;
}

bool isText(const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = characterAt(text, at);
    if (length == 0) {
      return false;
    }
    at += length;
  }
  return true;
}

class Parser {
 public:
  explicit Parser(const std::string& source) : source_(source) {}

  absl::StatusOr<Lifetimes> run(const std::string& text) {
    constexpr char kByteOrderMark[] = "\xEF\xBB\xBF";
    size_t begin = text.rfind(kByteOrderMark, 0) == 0 ? 3 : 0;
    while (begin < text.size()) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      std::string line = text.substr(begin, end - begin);
      if (!line.empty() && line.back() == '\r') {
        line.pop_back();
      }
      begin = end + 1;
      ++line_;
      const std::vector<Field> fields = fieldsOf(line);
      if (fields.size() > 1 || !fields[0].text.empty()) {
        WEFT_RETURN_IF_ERROR(width_ == 0 ? header(fields) : row(fields));
      }
    }
    if (width_ == 0) {
      line_ = 1;
      return error(1, "the file is empty; its first line must be id,lower,upper,size");
    }
    return std::move(lifetimes_);
  }

 private:
  template <typename... Parts>
  absl::Status error(size_t column, const Parts&... parts) const {
    return absl::InvalidArgumentError(absl::StrCat(source_, ":", line_, ":", column, ": ", parts...));
  }

  absl::Status header(const std::vector<Field>& fields) {
    place_.fill(-1);
    for (size_t i = 0; i < fields.size(); ++i) {
      const Field& field = fields[i];
      size_t which = 0;
      while (which < kColumns && kNames[which] != field.text) {
        ++which;
      }
      if (which == kColumns) {
        const std::string near = similarName(field.text, {kNames.begin(), kNames.end()});
        return error(field.column, "unknown column ", shown(field.text),
                     near.empty() ? "" : absl::StrCat("; did you mean '", near, "'?"),
                     "; the first line names the columns id,lower,upper,size and no others");
      }
      if (place_[which] >= 0) {
        return error(field.column, "column '", kNames[which], "' is named twice; remove one");
      }
      place_[which] = static_cast<int>(i);
    }
    for (size_t which = 0; which < kColumns; ++which) {
      if (place_[which] < 0) {
        return error(fields.back().column, "column '", kNames[which], "' is missing after ", shown(fields.back().text),
                     "; the first line names the columns id,lower,upper,size");
      }
    }
    width_ = fields.size();
    return absl::OkStatus();
  }

  absl::Status row(const std::vector<Field>& fields) {
    if (fields.size() != width_) {
      return error(fields[std::min(fields.size() - 1, width_)].column, "found ", fields.size(),
                   " values where the first line names ", width_,
                   " columns; write one value per column, without quotes or commas inside");
    }
    const Field& id = fields[place_[kId]];
    if (id.text.empty() || !isText(id.text)) {
      return error(id.column, "column 'id': found ", shown(id.text), ", not a name; write printable text in UTF-8");
    }
    const auto [known, added] = lines_.try_emplace(id.text, line_);
    if (!added) {
      return error(id.column, "column 'id': ", shown(id.text), " already stands in line ", known->second,
                   "; every buffer needs a name of its own");
    }
    WEFT_ASSIGN_OR_RETURN(const int64_t lower, number(fields, kLower));
    WEFT_ASSIGN_OR_RETURN(const int64_t upper, number(fields, kUpper));
    WEFT_ASSIGN_OR_RETURN(const int64_t size, number(fields, kSize));
    if (upper <= lower) {
      return error(fields[place_[kUpper]].column, "column 'upper': found ", upper, ", not above lower ", lower,
                   "; a buffer is alive in steps lower, ..., upper - 1, so write its last step + 1");
    }
    const size_t at = fields[place_[kSize]].column;
    if (size < 0) {
      return error(at, "column 'size': found ", size, "; write a number of bytes >= 0");
    }
    if (size > kMaxTotal - total_) {
      return error(at, "column 'size': with ", size, " the sizes sum to more than ", kMaxTotal,
                   "; write sizes in bytes, or all in a larger unit");
    }
    total_ += size;
    lifetimes_.ids.push_back(id.text);
    lifetimes_.items.push_back({lower, upper, size});
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> number(const std::vector<Field>& fields, Column column) const {
    const Field& field = fields[place_[column]];
    const absl::StatusOr<int64_t> value = parseInteger(field.text);
    if (absl::IsOutOfRange(value.status())) {
      return error(field.column, "column '", kNames[column], "': found ", shown(field.text),
                   ", too large; write an integer of 64 bits");
    }
    if (!value.ok()) {
      return error(field.column, "column '", kNames[column], "': found ", shown(field.text),
                   ", not an integer; write decimal digits only");
    }
    return *value;
  }

  const std::string& source_;
  int64_t line_ = 0;
  size_t width_ = 0;  // columns; 0 before the header
  std::array<int, kColumns> place_{};
  std::unordered_map<std::string, int64_t> lines_;
  int64_t total_ = 0;
  Lifetimes lifetimes_;
};

}  // namespace

absl::StatusOr<Lifetimes> parseLifetimes(const std::string& text, const std::string& source) {
  return Parser(source).run(text);
}

}  // namespace weft::tools
