#include "runtime/exec/trace.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/base/file_writer.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double micros(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

Json rowName(size_t row, const std::string& name) {
  return {{"name", "thread_name"}, {"ph", "M"}, {"pid", 0}, {"tid", row}, {"args", {{"name", name}}}};
}

// Where an event stands in the file.
struct Place {
  size_t row;
  Clock::time_point start;  // of the file's time
};

Json span(const std::string& name, const char* category, const Place& place, Clock::time_point begin,
          Clock::time_point end) {
  return {{"name", name},
          {"cat", category},
          {"ph", "X"},
          {"pid", 0},
          {"tid", place.row},
          {"ts", micros(begin - place.start)},
          {"dur", micros(end - begin)}};
}

Json eventOf(const ActionEvent& event, const Place& place) {
  Json json = span(event.function->name(), "action", place, event.begin, event.end);
  json["args"] = {{"function", event.function->name()}, {"micro_batch", event.microBatch}};
  return json;
}

std::string kernelOf(const plan::Instruction& instruction) {
  if (instruction.has_collective()) {
    return plan::CollectiveKind_Name(instruction.collective().kind());
  }
  return instruction.has_transfer() ? instruction.transfer().send() ? "send" : "receive" : instruction.kernel();
}

Json eventOf(const ProfileEvent& event, const Place& place) {
  const plan::Instruction& instruction = *event.instruction;
  const char* const category = instruction.has_collective() ? "collective"
                               : instruction.has_transfer() ? "transfer"
                                                            : "kernel";
  Json json = span(instruction.label(), category, place, event.begin, event.end);
  json["args"] = {{"kernel", kernelOf(instruction)}, {"micro_batch", event.microBatch}, {"flops", instruction.flops()}};
  return json;
}

// Index of every instruction in its function.
std::map<const plan::Instruction*, int> indicesOf(const Profile& profile) {
  std::map<const plan::Instruction*, int> indices;
  std::set<const plan::Function*> seen;
  for (const ActionEvent& event : profile.actions) {
    const bool isNew = seen.insert(event.function).second;
    for (int i = 0; isNew && i < event.function->instructions_size(); ++i) {
      indices[&event.function->instructions(i)] = i;
    }
  }
  return indices;
}

// Names that are no UTF-8 are shown as well as can be.
std::string textOf(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Actions and the instructions inside each, in order of time.
void writeRank(FileWriter& file, const Profile& profile, const Place& place) {
  const std::map<const plan::Instruction*, int> indices = indicesOf(profile);
  auto next = profile.instructions.begin();
  for (const ActionEvent& action : profile.actions) {
    file.write(",\n" + textOf(eventOf(action, place)));
    for (; next != profile.instructions.end() && next->begin < action.end; ++next) {
      Json event = eventOf(*next, place);
      event["args"]["function"] = action.function->name();
      event["args"]["index"] = indices.at(next->instruction);
      file.write(",\n" + textOf(event));
    }
  }
}

}  // namespace

absl::Status writeChromeTrace(const std::vector<std::unique_ptr<Rank>>& ranks, const std::vector<HostEvent>& host,
                              const std::string& path) {
  Clock::time_point start = Clock::time_point::max();
  for (const HostEvent& event : host) {
    start = std::min(start, event.begin);
  }
  FileWriter file(path);
  file.write("{\"traceEvents\":[\n" + textOf(rowName(ranks.size(), "host")));
  for (const HostEvent& event : host) {
    file.write(",\n" + textOf(span(event.name, "step", {ranks.size(), start}, event.begin, event.end)));
  }
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    file.write(",\n" + textOf(rowName(rank, absl::StrCat("rank ", rank))));
    writeRank(file, ranks[rank]->profile(), {rank, start});
  }
  file.write("\n]}\n");
  return file.finish();
}

}  // namespace weft
