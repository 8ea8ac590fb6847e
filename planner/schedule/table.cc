#include "planner/schedule/table.h"

#include <algorithm>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace weft::schedule {
namespace {

constexpr char kExpected[] = "expected stage, one of F I W B, micro-batch, such as 2F0";

std::optional<ActionKind> kindOf(char letter) {
  switch (letter) {
    case 'F':
      return ActionKind::kForward;
    case 'I':
      return ActionKind::kInputGrad;
    case 'W':
      return ActionKind::kWeightGrad;
    case 'B':
      return ActionKind::kBackward;
    default:
      return std::nullopt;
  }
}

// A character as it may stand in an error: control and non-ASCII bytes as numbers.
std::string show(char c) {
  auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x7f ? std::string{'\'', c, '\''} : absl::StrCat("byte ", static_cast<int>(byte));
}

// Reads one table, or one action; knows where it stands.
class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}

  bool atEnd() const { return at_ >= text_.size(); }
  char peek() const { return atEnd() ? '\0' : text_[at_]; }
  bool atLineEnd() const { return atEnd() || peek() == '\n' || (peek() == '\r' && text_.compare(at_, 2, "\r\n") == 0); }
  void skipSpaces() {
    while (!atEnd() && (peek() == ' ' || peek() == '\t')) {
      ++at_;
    }
  }
  bool accept(const std::string& word) {
    if (text_.compare(at_, word.size(), word) != 0) {
      return false;
    }
    at_ += word.size();
    return true;
  }
  void nextLine() {
    accept("\r");
    accept("\n");
    ++line_;
    lineStart_ = at_;
  }
  int64_t line() const { return line_; }

  absl::Status error(const std::string& expected) const {
    const std::string found = atEnd() ? "the end" : atLineEnd() ? "the end of the line" : show(peek());
    return absl::InvalidArgumentError(
        absl::StrCat("line ", line_, ", column ", at_ - lineStart_ + 1, ": found ", found, ", ", expected));
  }

  absl::StatusOr<int32_t> number(const std::string& expected) {
    const size_t start = at_;
    int64_t value = 0;
    for (; peek() >= '0' && peek() <= '9'; ++at_) {
      value = value * 10 + (peek() - '0');
      if (value >= kMaxIndex) {
        at_ = start;
        return error(absl::StrCat("expected a number below ", kMaxIndex));
      }
    }
    if (at_ == start) {
      return error(expected);
    }
    return static_cast<int32_t>(value);
  }

  absl::StatusOr<Action> action() {
    Action action;
    WEFT_ASSIGN_OR_RETURN(action.stage, number(kExpected));
    std::optional<ActionKind> kind = kindOf(peek());
    if (atEnd() || !kind) {
      return error(absl::StrCat("expected one of F I W B after stage ", action.stage));
    }
    action.kind = *kind;
    ++at_;
    WEFT_ASSIGN_OR_RETURN(action.micro, number(absl::StrCat("expected the micro-batch after ", action.stage,
                                                            std::string(1, kindLetter(*kind)))));
    return action;
  }

  // `(0F7;7B3)OVERLAP_F_B`, the parenthesis not read yet.
  absl::Status overlapped(std::vector<Action>& row) {
    accept("(");
    do {
      WEFT_ASSIGN_OR_RETURN(Action part, action());
      row.push_back(part);
    } while (accept(";"));
    if (!accept(")OVERLAP_F_B")) {
      return error("expected ';' and another action, or ')OVERLAP_F_B'");
    }
    return absl::OkStatus();
  }

  absl::Status row(std::vector<Action>& actions) {
    for (bool more = true; more; more = accept(",")) {
      skipSpaces();
      if (peek() == '(' && !atEnd()) {
        WEFT_RETURN_IF_ERROR(overlapped(actions));
      } else if (peek() != ',' && !atLineEnd()) {
        WEFT_ASSIGN_OR_RETURN(Action one, action());
        actions.push_back(one);
      }
      skipSpaces();
    }
    return atLineEnd() ? absl::OkStatus() : error("expected ',' or the end of the line");
  }

 private:
  const std::string& text_;
  size_t at_ = 0;
  size_t lineStart_ = 0;
  int64_t line_ = 1;
};

// Which rank owns each stage, from the rows.
absl::Status inferStages(Table& table) {
  std::map<int32_t, int32_t> owner;
  for (int32_t rank = 0; rank < table.ranks(); ++rank) {
    for (const Action& action : table.orders[rank]) {
      auto [found, fresh] = owner.emplace(action.stage, rank);
      if (!fresh && found->second != rank) {
        return absl::InvalidArgumentError(absl::StrCat(
            "line ", rank + 1, ": ", printAction(action), " puts stage ", action.stage, " on rank ", rank,
            ", but line ", found->second + 1, " has it on rank ", found->second, "; a stage lives on one rank"));
      }
    }
  }
  int32_t next = 0;
  for (const auto& [stage, rank] : owner) {
    if (stage != next) {
      return absl::InvalidArgumentError(absl::StrCat("stage ", next, " has no action, but stage ",
                                                     owner.rbegin()->first,
                                                     " has; stages are numbered from 0 without gaps"));
    }
    table.stageToRank.push_back(rank);
    ++next;
  }
  return absl::OkStatus();
}

}  // namespace

char kindLetter(ActionKind kind) {
  return "FIWB"[static_cast<int>(kind)];
}

int64_t Table::actions() const {
  int64_t count = 0;
  for (const std::vector<Action>& order : orders) {
    count += static_cast<int64_t>(order.size());
  }
  return count;
}

int32_t Table::micros() const {
  int32_t count = 0;
  for (const std::vector<Action>& order : orders) {
    for (const Action& action : order) {
      count = std::max(count, action.micro + 1);
    }
  }
  return count;
}

std::string printAction(const Action& action) {
  return absl::StrCat(action.stage, std::string(1, kindLetter(action.kind)), action.micro);
}

absl::StatusOr<Action> parseAction(const std::string& text) {
  Reader reader(text);
  WEFT_ASSIGN_OR_RETURN(Action action, reader.action());
  return reader.atEnd() ? absl::StatusOr<Action>(action)
                        : reader.error(absl::StrCat("expected nothing after ", printAction(action)));
}

std::string printCsv(const Table& table) {
  std::string text;
  for (const std::vector<Action>& order : table.orders) {
    for (size_t i = 0; i < order.size(); ++i) {
      absl::StrAppend(&text, i == 0 ? "" : ",", printAction(order[i]));
    }
    text += '\n';
  }
  return text;
}

absl::StatusOr<Table> parseCsv(const std::string& text) {
  Table table;
  Reader reader(text);
  size_t used = 0;  // rows up to the last one with an action
  while (!reader.atEnd()) {
    if (reader.line() > kMaxIndex) {
      return reader.error(absl::StrCat("expected at most ", kMaxIndex, " ranks"));
    }
    WEFT_RETURN_IF_ERROR(reader.row(table.orders.emplace_back()));
    used = table.orders.back().empty() ? used : table.orders.size();
    reader.nextLine();
  }
  if (used == 0) {
    return absl::InvalidArgumentError(
        "the table has no action; expected one row per rank, actions separated by commas, such as 0F0,0B0");
  }
  table.orders.resize(used);
  WEFT_RETURN_IF_ERROR(inferStages(table));
  return table;
}

}  // namespace weft::schedule
