#include "runtime/exec/trace.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double micros(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

Json rowName(size_t rank) {
  return {{"name", "thread_name"},
          {"ph", "M"},
          {"pid", 0},
          {"tid", rank},
          {"args", {{"name", absl::StrCat("rank ", rank)}}}};
}

Json eventOf(const ProfileEvent& event, size_t rank, Clock::time_point start) {
  const plan::Instruction& instruction = *event.instruction;
  const bool collective = instruction.has_collective();
  return {{"name", instruction.label()},
          {"cat", collective ? "collective" : "kernel"},
          {"ph", "X"},
          {"pid", 0},
          {"tid", rank},
          {"ts", micros(event.begin - start)},
          {"dur", micros(event.end - event.begin)},
          {"args",
           {{"kernel", collective ? plan::CollectiveKind_Name(instruction.collective().kind()) : instruction.kernel()},
            {"piece", event.piece},
            {"flops", instruction.flops()}}}};
}

// Names that are no UTF-8 are shown as well as can be.
std::string textOf(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

absl::Status writeChromeTrace(const std::vector<std::unique_ptr<Rank>>& ranks, const std::string& path) {
  Clock::time_point start = Clock::time_point::max();
  for (const auto& rank : ranks) {
    start = rank->profile().empty() ? start : std::min(start, rank->profile().front().begin);
  }
  std::ofstream stream(path);
  stream << "{\"traceEvents\":[";
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    stream << (rank > 0 ? ",\n" : "\n") << textOf(rowName(rank));
    for (const ProfileEvent& event : ranks[rank]->profile()) {
      stream << ",\n" << textOf(eventOf(event, rank, start));
    }
  }
  stream << "\n]}\n";
  stream.flush();
  return stream ? absl::OkStatus()
                : absl::UnavailableError(absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
}

}  // namespace weft
