#include "tools/commands/view/trace_profile.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/plan/statistics.h"

namespace weft::tools {
namespace {

using nlohmann::json;

constexpr double kMicros = 1e-6;  // the unit of the file, in seconds

struct Event {
  std::string label;
  std::string kernel;
  int64_t piece = 0;
  double start = 0;  // seconds
  double seconds = 0;
};

// An instruction of a rank's step.
struct Turn {
  int call = 0;  // place in the step
  int64_t function = 0;
  int64_t piece = 0;
  int instruction = 0;
  const plan::Instruction* what = nullptr;
};

// What the runtime writes as an event's kernel.
std::string kernelOf(const plan::Instruction& instruction) {
  return instruction.has_collective() ? plan::CollectiveKind_Name(instruction.collective().kind())
                                      : instruction.kernel();
}

bool fits(const Event& event, const Turn& turn) {
  return event.label == turn.what->label() && event.kernel == kernelOf(*turn.what) && event.piece == turn.piece;
}

std::string textOf(const std::string& label, const std::string& kernel, int64_t piece) {
  return absl::StrCat("'", label, "'", kernel.empty() ? "" : absl::StrCat(" (", kernel, ")"), " of piece ", piece);
}

std::vector<Turn> turnsOf(const plan::Plan& block, const google::protobuf::RepeatedPtrField<plan::Action>& calls) {
  std::vector<Turn> turns;
  for (int call = 0; call < calls.size(); ++call) {
    const plan::Function& function = block.functions(static_cast<int>(calls[call].function()));
    for (int i = 0; i < function.instructions_size(); ++i) {
      turns.push_back({call, calls[call].function(), calls[call].piece(), i, &function.instructions(i)});
    }
  }
  return turns;
}

// A rank's place among the blocks, and its events.
struct RankEvents {
  size_t block = 0;
  int64_t rank = 0;  // of all
  const plan::RankSchedule* schedule = nullptr;
  std::vector<Turn> turns;  // of one step
  std::vector<Event> events;
  size_t first = 0;  // event of the first step
};

class Reader {
 public:
  Reader(const plan::Plan& plan, const std::string& source) : blocks_(blocksOf(plan)), source_(source) {}

  absl::StatusOr<TraceProfile> run(const std::string& text, std::optional<int64_t> step) {
    for (size_t b = 0; b < blocks_.size(); ++b) {
      for (const plan::RankSchedule& schedule : blocks_[b]->schedules()) {
        ranks_.push_back({b, static_cast<int64_t>(ranks_.size()), &schedule, turnsOf(*blocks_[b], schedule.step()), {}});
      }
    }
    WEFT_RETURN_IF_ERROR(readEvents(text));
    out_.steps = std::numeric_limits<int64_t>::max();
    for (RankEvents& rank : ranks_) {
      WEFT_RETURN_IF_ERROR(match(rank));
    }
    if (out_.steps == std::numeric_limits<int64_t>::max()) {
      return error("the plan's step has no instructions; there is nothing to compare");
    }
    measureSteps();
    WEFT_RETURN_IF_ERROR(chooseStep(step));
    for (const RankEvents& rank : ranks_) {
      fillCalls(rank);
    }
    fillSeconds();
    return std::move(out_);
  }

 private:
  template <typename... Parts>
  absl::Status error(const Parts&... parts) const {
    return absl::InvalidArgumentError(absl::StrCat(source_, ": ", parts...));
  }

  absl::Status readEvents(const std::string& text) {
    const json trace = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (trace.is_discarded() || !trace.is_object() || !trace.contains("traceEvents") ||
        !trace["traceEvents"].is_array()) {
      return error(
          "is no trace: a JSON object with the member 'traceEvents' is expected; record one with --trace of weft-run "
          "or of an example");
    }
    size_t at = 0;
    for (const json& entry : trace["traceEvents"]) {
      if (entry.is_object() && entry.value("ph", json()) == "X") {
        WEFT_RETURN_IF_ERROR(readEvent(entry, at));
      }
      ++at;
    }
    return absl::OkStatus();
  }

  absl::Status readEvent(const json& entry, size_t at) {
    const auto number = [&](const char* key) { return entry.contains(key) && entry[key].is_number(); };
    const json args = entry.value("args", json::object());
    if (!entry.contains("name") || !entry["name"].is_string() || !number("tid") || !number("ts") || !number("dur") ||
        !args.is_object() || !args.contains("kernel") || !args["kernel"].is_string() || !args.contains("piece") ||
        !args["piece"].is_number_integer()) {
      return error("event ", at, " lacks one of name, tid, ts, dur, args.kernel, args.piece; record the trace again");
    }
    const auto rank = entry["tid"].get<double>();
    if (rank < 0 || rank >= static_cast<double>(ranks_.size())) {
      return error("event ", at, " is of rank ", rank, ", the plan has ranks 0 to ", ranks_.size() - 1,
                   ": the trace is of another program");
    }
    ranks_[static_cast<size_t>(rank)].events.push_back(
        {entry["name"].get<std::string>(), args["kernel"].get<std::string>(), args["piece"].get<int64_t>(),
         entry["ts"].get<double>() * kMicros, entry["dur"].get<double>() * kMicros});
    return absl::OkStatus();
  }

  // Where the steps begin, and that all events are those of the steps.
  absl::Status match(RankEvents& rank) {
    if (rank.turns.empty()) {
      return absl::OkStatus();
    }
    if (rank.events.empty()) {
      return error("has no event of rank ", rank.rank, "; the plan has ", ranks_.size(),
                   " ranks: the trace is of another program");
    }
    // What another program brought is not initialised again: those instructions are left out.
    for (const Turn& turn : turnsOf(*blocks_[rank.block], rank.schedule->init())) {
      rank.first += rank.first < rank.events.size() && fits(rank.events[rank.first], turn) ? 1 : 0;
    }
    for (size_t at = rank.first; at < rank.events.size(); ++at) {
      const Turn& turn = rank.turns[(at - rank.first) % rank.turns.size()];
      if (!fits(rank.events[at], turn)) {
        return mismatch(rank, at, turn);
      }
    }
    const auto steps = static_cast<int64_t>((rank.events.size() - rank.first) / rank.turns.size());
    if (steps == 0) {
      return error("has no complete step of rank ", rank.rank, ": ", rank.events.size() - rank.first, " of ",
                   rank.turns.size(), " instructions; run at least one step");
    }
    out_.steps = std::min(out_.steps, steps);
    return absl::OkStatus();
  }

  absl::Status mismatch(const RankEvents& rank, size_t at, const Turn& turn) const {
    const Event& event = rank.events[at];
    const plan::Plan& block = *blocks_[rank.block];
    std::string where;
    if (const auto place = static_cast<int>(turn.what->location()); place < block.locations_size()) {
      where = absl::StrCat(", ", block.locations(place).file(), ":", block.locations(place).line());
    }
    return error("event ", at, " of rank ", rank.rank, " is ", textOf(event.label, event.kernel, event.piece),
                 ", the plan has ", textOf(turn.what->label(), kernelOf(*turn.what), turn.piece), " there (@",
                 block.functions(static_cast<int>(turn.function)).name(), where,
                 "): the trace is of another program; record one with this plan");
  }

  // The events of a step.
  const Event* stepOf(const RankEvents& rank, int64_t step) const {
    return rank.events.data() + rank.first + static_cast<size_t>(step) * rank.turns.size();
  }

  double begin(int64_t step) const {
    double first = std::numeric_limits<double>::infinity();
    for (const RankEvents& rank : ranks_) {
      first = rank.turns.empty() ? first : std::min(first, stepOf(rank, step)->start);
    }
    return first;
  }

  void measureSteps() {
    for (int64_t step = 0; step < out_.steps; ++step) {
      double last = 0;
      for (const RankEvents& rank : ranks_) {
        if (!rank.turns.empty()) {
          const Event& event = stepOf(rank, step)[rank.turns.size() - 1];
          last = std::max(last, event.start + event.seconds);
        }
      }
      out_.stepSeconds.push_back(last - begin(step));
    }
  }

  absl::Status chooseStep(std::optional<int64_t> step) {
    if (step.has_value() && *step >= out_.steps) {
      return error("has no complete step ", *step, ", only ", out_.steps, "; steps are counted from 0");
    }
    std::vector<int64_t> order;
    for (int64_t i = out_.steps > 1 ? 1 : 0; i < out_.steps; ++i) {
      order.push_back(i);
    }
    const auto shorter = [&](int64_t a, int64_t b) { return out_.stepSeconds[a] < out_.stepSeconds[b]; };
    std::stable_sort(order.begin(), order.end(), shorter);
    out_.shown = step.value_or(order[(order.size() - 1) / 2]);
    return absl::OkStatus();
  }

  void fillCalls(const RankEvents& rank) {
    std::vector<ExecutedCall>& calls = out_.ranks.emplace_back();
    if (rank.turns.empty()) {
      return;
    }
    const double zero = begin(out_.shown);
    const Event* events = stepOf(rank, out_.shown);
    bool leading = true;  // nothing but receives in this call so far
    for (size_t i = 0; i < rank.turns.size(); ++i) {
      const Turn& turn = rank.turns[i];
      const Event& event = events[i];
      if (i == 0 || rank.turns[i - 1].call != turn.call) {
        calls.push_back({turn.function, turn.piece, event.start - zero});
        leading = true;
      }
      ExecutedCall& call = calls.back();
      call.end = event.start + event.seconds - zero;
      const bool receive = turn.what->has_transfer() && !turn.what->transfer().send();
      leading = leading && receive;
      call.lead = leading ? call.end - call.start : call.lead;
      call.waiting += receive ? event.seconds : 0;
      call.moving += turn.what->has_collective() ? event.seconds : 0;
    }
  }

  void fillSeconds() {
    std::vector<std::vector<std::vector<int64_t>>> counts;
    for (const plan::Plan* block : blocks_) {
      auto& seconds = out_.seconds.emplace_back();
      auto& count = counts.emplace_back();
      for (const plan::Function& function : block->functions()) {
        seconds.emplace_back(function.instructions_size(), 0.0);
        count.emplace_back(function.instructions_size(), 0);
      }
    }
    for (const RankEvents& rank : ranks_) {
      for (int64_t step = out_.steps > 1 ? 1 : 0; step < out_.steps; ++step) {
        for (size_t i = 0; i < rank.turns.size(); ++i) {
          const Turn& turn = rank.turns[i];
          out_.seconds[rank.block][turn.function][turn.instruction] += stepOf(rank, step)[i].seconds;
          ++counts[rank.block][turn.function][turn.instruction];
        }
      }
    }
    for (size_t b = 0; b < counts.size(); ++b) {
      for (size_t f = 0; f < counts[b].size(); ++f) {
        for (size_t i = 0; i < counts[b][f].size(); ++i) {
          out_.seconds[b][f][i] /= static_cast<double>(std::max<int64_t>(counts[b][f][i], 1));
        }
      }
    }
  }

  const std::vector<const plan::Plan*> blocks_;
  const std::string& source_;
  std::vector<RankEvents> ranks_;
  TraceProfile out_;
};

}  // namespace

absl::StatusOr<TraceProfile> readTraceProfile(const std::string& text, const std::string& source,
                                              const plan::Plan& plan, std::optional<int64_t> step) {
  return Reader(plan, source).run(text, step);
}

}  // namespace weft::tools
