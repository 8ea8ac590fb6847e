#include "ir/layout/reshard_answers.h"

#include <cstdlib>
#include <mutex>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weft::reshard {
namespace {

// Between the sizes for which a path is known for good.
constexpr int64_t kStep = 256;
// Larger tensors have problems of their own, so that nothing overflows.
constexpr int64_t kLargestUnit = int64_t{1} << 32;
// Paths that are kept.
constexpr size_t kMostPaths = 1 << 17;
// Each step of a path is rounded to whole picoseconds.
constexpr Picoseconds kRounding = 8;

// The problem without what makes no difference to it: parts of a dimension divide the number of ranks.
Problem normalized(Problem problem) {
  for (int64_t& size : problem.sizes) {
    const int64_t divisor = std::gcd(size, problem.cuts.back());
    problem.unitBytes *= size / divisor;
    size = divisor;
  }
  return problem;
}

class Answers {
 public:
  Answer of(const Problem& problem, const Machine& machine, const std::string& machineKey) {
    const std::string key = absl::StrCat(machineKey, problem.key());
    if (problem.unitBytes >= 1 && problem.unitBytes <= kLargestUnit) {
      int64_t below = 1;
      while (below <= problem.unitBytes / kStep) {
        below *= kStep;
      }
      const Path path = found(problem, key, machine, below);
      if (problem.unitBytes == below) {
        return {path, priced(problem, machine, path, below)};
      }
      if (path == found(problem, key, machine, below * kStep) && isEven(problem, machine, path, below)) {
        return {path, priced(problem, machine, path, problem.unitBytes)};
      }
    }
    const Path path = found(problem, key, machine, problem.unitBytes);
    return {path, priced(problem, machine, path, problem.unitBytes)};
  }

 private:
  // Of the problem with units of so many bytes.
  Path found(Problem problem, const std::string& key, const Machine& machine, int64_t unitBytes) {
    const std::string entry = absl::StrCat(key, ";", unitBytes);
    {
      const std::lock_guard lock(mutex_);
      if (const auto it = paths_.find(entry); it != paths_.end()) {
        return it->second;
      }
    }
    problem.unitBytes = unitBytes;
    Path path = cheapestPath(Space(problem, machine));
    const std::lock_guard lock(mutex_);
    if (paths_.size() >= kMostPaths) {
      paths_.clear();
    }
    paths_.emplace(entry, path);
    return path;
  }

  static Price priced(Problem problem, const Machine& machine, const Path& path, int64_t unitBytes) {
    problem.unitBytes = unitBytes;
    return pathPrice(Space(problem, machine), path);
  }

  // Is its price a straight line between units of `below` bytes and kStep times as many, as far as to the problem's?
  static bool isEven(const Problem& problem, const Machine& machine, const Path& path, int64_t below) {
    const auto time = [&](int64_t unitBytes) {
      return static_cast<double>(priced(problem, machine, path, unitBytes).time);
    };
    const double first = time(below);
    const double slope = (time(below * kStep) - first) / static_cast<double>(below * (kStep - 1));
    const double line = first + slope * static_cast<double>(problem.unitBytes - below);
    return time(problem.unitBytes) <= line + kRounding * static_cast<double>(path.size() + 1);
  }

  std::mutex mutex_;
  std::unordered_map<std::string, Path> paths_;
};

}  // namespace

std::string pricesKey(const Machine& machine) {
  return absl::StrFormat("%a %a %a %a %a %d;", machine.launchLatency, machine.linkLatency, machine.linkBandwidth,
                         machine.networkLatency, machine.networkBandwidth, machine.devicesPerNode);
}

Answer answerOf(Problem problem, const Machine& machine, const std::string& machineKey) {
  static Answers& answers = *new Answers;  // never destroyed: threads may ask until the process ends
  return answers.of(normalized(std::move(problem)), machine, machineKey);
}

}  // namespace weft::reshard
