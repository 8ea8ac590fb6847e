#include "planner/schedule/timeline.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weft::schedule {
namespace {

constexpr double kMostColumns = 20'000;  // of all panels; beyond that short actions lose their labels

struct Scale {
  double columnsPerTime = 0;
  int64_t markEvery = 16;  // columns between two figures of the time line; a panel is a whole number of them
};

// The shortest action has room for its label and a space. Four of them between two marks, so that actions of one length
// are never cut at the end of a panel.
Scale scaleOf(const Table& table, const Simulation& simulation) {
  double scale = 0;
  size_t longest = 0;
  for (int32_t rank = 0; rank < table.ranks(); ++rank) {
    for (size_t k = 0; k < table.orders[rank].size(); ++k) {
      const double duration = simulation.ends[rank][k] - simulation.starts[rank][k];
      if (duration > 0) {
        const size_t label = printAction(table.orders[rank][k]).size() + 1;
        longest = std::max(longest, label);
        scale = std::max(scale, static_cast<double>(label) / duration);
      }
    }
  }
  if (scale == 0) {
    return {};
  }
  return {std::min(scale, kMostColumns / simulation.makespan), static_cast<int64_t>(4 * longest)};
}

int64_t column(double time, double scale) {
  return std::llround(time * scale);
}

std::string lineOf(const Table& table, const Simulation& simulation, int32_t rank, double scale) {
  std::string line(column(simulation.makespan, scale), '.');
  for (size_t k = 0; k < table.orders[rank].size(); ++k) {
    const int64_t from = column(simulation.starts[rank][k], scale);
    const int64_t cell = column(simulation.ends[rank][k], scale) - from;
    if (cell > 0) {
      std::string text = printAction(table.orders[rank][k]);
      text.resize(cell - 1, '-');
      line.replace(from, cell, text + " ");
    }
  }
  return line;
}

std::string timeLine(int64_t columns, const Scale& scale) {
  std::string line;
  for (int64_t at = 0; at < columns; at += scale.markEvery) {
    line.resize(at, ' ');
    line += absl::StrFormat("%.4g", static_cast<double>(at) / scale.columnsPerTime);
  }
  line.resize(std::max<int64_t>(columns, static_cast<int64_t>(line.size())), ' ');
  return line;
}

std::string withoutTrailingSpaces(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

}  // namespace

std::string printTimeline(const Table& table, const Simulation& simulation, int32_t width) {
  const Scale scale = scaleOf(table, simulation);
  const double perTime = scale.columnsPerTime;
  if (perTime == 0) {
    return "nothing takes time\n";
  }
  std::vector<std::string> names{"time"};
  std::vector<std::string> lines{timeLine(column(simulation.makespan, perTime), scale)};
  size_t margin = 0;
  for (int32_t rank = 0; rank < table.ranks(); ++rank) {
    names.push_back(absl::StrCat("rank ", rank));
    lines.push_back(lineOf(table, simulation, rank, perTime));
    margin = std::max(margin, names.back().size() + 2);
  }
  const int64_t room = std::max<int64_t>(width, 40) - static_cast<int64_t>(margin);
  const int64_t panel = std::max<int64_t>(1, room / scale.markEvery) * scale.markEvery;
  std::string text;
  for (int64_t from = 0; from < column(simulation.makespan, perTime); from += panel) {
    absl::StrAppend(&text, from > 0 ? "\n" : "");
    for (size_t k = 0; k < lines.size(); ++k) {
      std::string name = names[k];
      name.resize(margin, ' ');
      absl::StrAppend(&text, withoutTrailingSpaces(name + lines[k].substr(from, panel)), "\n");
    }
  }
  return text;
}

}  // namespace weft::schedule
