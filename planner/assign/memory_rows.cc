#include "planner/assign/memory_rows.h"

#include <algorithm>
#include <map>
#include <utility>

namespace weft::assign {
namespace {

// Takes off what each residence takes in any case, joins residences of a variable in the same rows, and drops those
// that take nothing.
void takeLeast(Model& model) {
  std::vector<int64_t> change(model.capacity.size() + 1, 0);
  for (std::vector<Residence>& residences : model.residences) {
    std::map<std::pair<int, int>, std::vector<int64_t>> joined;
    for (Residence& residence : residences) {
      std::vector<int64_t>& usage = joined[{residence.first, residence.last}];
      usage.resize(residence.usage.size(), 0);
      for (size_t x = 0; x < usage.size(); ++x) {
        usage[x] += residence.usage[x];
      }
    }
    residences.clear();
    for (auto& [rows, usage] : joined) {
      const int64_t least = *std::min_element(usage.begin(), usage.end());
      change[rows.first] += least;
      change[rows.second] -= least;
      bool takes = false;
      for (int64_t& taken : usage) {
        taken -= least;
        takes = takes || taken > 0;
      }
      if (takes && rows.first < rows.second) {
        residences.push_back({rows.first, rows.second, std::move(usage)});
      }
    }
  }
  int64_t sum = 0;
  for (size_t row = 0; row < model.capacity.size(); ++row) {
    sum += change[row];
    model.capacity[row] -= sum;
  }
}

// Of each row: is it larger than what the largest values put there?
std::vector<char> rowsThatBind(const Model& model) {
  std::vector<int64_t> change(model.capacity.size() + 1, 0);
  for (const std::vector<Residence>& residences : model.residences) {
    for (const Residence& residence : residences) {
      const int64_t most = *std::max_element(residence.usage.begin(), residence.usage.end());
      change[residence.first] += most;
      change[residence.last] -= most;
    }
  }
  std::vector<char> binds(model.capacity.size());
  int64_t sum = 0;
  for (size_t row = 0; row < binds.size(); ++row) {
    sum += change[row];
    binds[row] = sum > model.capacity[row] ? 1 : 0;
  }
  return binds;
}

// Of the rows in `kept`, drops those whose residents are all in the row before or behind them, which has no more room.
void dropContained(const Model& model, std::vector<int>& kept) {
  std::vector<char> starts(model.capacity.size() + 1, 0);
  std::vector<char> ends(model.capacity.size() + 1, 0);
  for (const std::vector<Residence>& residences : model.residences) {
    for (const Residence& residence : residences) {
      starts[residence.first] = 1;
      ends[residence.last] = 1;
    }
  }
  struct Row {
    int row;
    bool starts;  // does a residence start, or end, between the row before it that is left and this one?
    bool ends;
  };
  std::vector<Row> left;
  int from = 0;
  bool ended = false;  // does one end before a row that was dropped behind the last that is left?
  for (const int row : kept) {
    Row next{row, false, ended};
    for (; from <= row; ++from) {
      next.starts = next.starts || starts[from] != 0;
      next.ends = next.ends || ends[from] != 0;
    }
    while (!left.empty() && !next.ends && model.capacity[left.back().row] >= model.capacity[next.row]) {
      next.starts = next.starts || left.back().starts;
      next.ends = left.back().ends;
      left.pop_back();
    }
    if (!left.empty() && !next.starts && model.capacity[left.back().row] <= model.capacity[next.row]) {
      ended = next.ends;
      continue;
    }
    left.push_back(next);
    ended = false;
  }
  kept.clear();
  for (const Row& row : left) {
    kept.push_back(row.row);
  }
}

void keepRows(Model& model, const std::vector<int>& kept) {
  std::vector<int> before(model.capacity.size() + 1, 0);  // rows that are kept before each
  for (const int row : kept) {
    ++before[row + 1];
  }
  for (size_t row = 1; row < before.size(); ++row) {
    before[row] += before[row - 1];
  }
  std::vector<int64_t> capacity;
  std::vector<int> numbers;
  for (const int row : kept) {
    capacity.push_back(model.capacity[row]);
    numbers.push_back(model.rowNumbers.empty() ? row : model.rowNumbers[row]);
  }
  model.capacity = std::move(capacity);
  model.rowNumbers = std::move(numbers);
  for (std::vector<Residence>& residences : model.residences) {
    for (Residence& residence : residences) {
      residence.first = before[residence.first];
      residence.last = before[residence.last];
    }
    std::erase_if(residences, [](const Residence& residence) { return residence.first >= residence.last; });
  }
}

}  // namespace

bool compressRows(Model& model) {
  takeLeast(model);
  for (const int64_t capacity : model.capacity) {
    if (capacity < 0) {
      return false;
    }
  }
  const std::vector<char> binds = rowsThatBind(model);
  std::vector<int> kept;
  for (size_t row = 0; row < binds.size(); ++row) {
    if (binds[row] != 0) {
      kept.push_back(static_cast<int>(row));
    }
  }
  keepRows(model, kept);
  kept.resize(model.capacity.size());
  for (size_t row = 0; row < kept.size(); ++row) {
    kept[row] = static_cast<int>(row);
  }
  dropContained(model, kept);
  keepRows(model, kept);
  takeLeast(model);  // joins residences that are in the same rows now
  return true;
}

std::vector<int64_t> excessOf(const Model& model, const std::vector<int>& plan) {
  std::vector<int64_t> change(model.capacity.size() + 1, 0);
  for (int v = 0; v < model.variables(); ++v) {
    for (const Residence& residence : model.residences[v]) {
      change[residence.first] += residence.usage[plan[v]];
      change[residence.last] -= residence.usage[plan[v]];
    }
  }
  std::vector<int64_t> excess;
  int64_t used = 0;
  for (size_t row = 0; row < model.capacity.size(); ++row) {
    used += change[row];
    excess.push_back(used - model.capacity[row]);
  }
  return excess;
}

UsageProfile::UsageProfile(const std::vector<int64_t>& excess) : size_(1) {
  if (excess.empty()) {
    return;
  }
  while (size_ < static_cast<int>(excess.size())) {
    size_ *= 2;
  }
  most_.assign(2 * static_cast<size_t>(size_), INT64_MIN / 4);
  added_.assign(2 * static_cast<size_t>(size_), 0);
  std::copy(excess.begin(), excess.end(), most_.begin() + size_);
  for (int node = size_ - 1; node > 0; --node) {
    most_[node] = std::max(most_[2 * node], most_[2 * node + 1]);
  }
}

void UsageProfile::add(int first, int last, int64_t usage) {
  if (first < last && usage != 0) {
    add(1, 0, size_, {first, last, {}}, usage);
  }
}

void UsageProfile::add(int node, int begin, int end, const Residence& change, int64_t usage) {
  if (change.first <= begin && end <= change.last) {
    most_[node] += usage;
    added_[node] += usage;
    return;
  }
  const int middle = begin + (end - begin) / 2;
  if (change.first < middle) {
    add(2 * node, begin, middle, change, usage);
  }
  if (change.last > middle) {
    add(2 * node + 1, middle, end, change, usage);
  }
  most_[node] = std::max(most_[2 * node], most_[2 * node + 1]) + added_[node];
}

int64_t UsageProfile::excess(int node, int begin, int end, int first, int last) const {
  if (first <= begin && end <= last) {
    return most_[node];
  }
  const int middle = begin + (end - begin) / 2;
  int64_t most = INT64_MIN / 4;
  if (first < middle) {
    most = std::max(most, excess(2 * node, begin, middle, first, last));
  }
  if (last > middle) {
    most = std::max(most, excess(2 * node + 1, middle, end, first, last));
  }
  return most + added_[node];
}

int UsageProfile::fullest() const {
  int node = 1;
  while (node < size_) {
    node = most_[2 * node] >= most_[2 * node + 1] ? 2 * node : 2 * node + 1;
  }
  return node - size_;
}

Residents::Residents(const Model& model) : size_(1) {
  while (size_ < static_cast<int>(model.capacity.size())) {
    size_ *= 2;
  }
  below_.resize(2 * static_cast<size_t>(size_));
  for (int v = 0; v < model.variables(); ++v) {
    for (const Residence& residence : model.residences[v]) {
      add(1, 0, size_, residence, v);
    }
  }
}

void Residents::add(int node, int begin, int end, const Residence& residence, int variable) {
  if (residence.first <= begin && end <= residence.last) {
    below_[node].push_back(variable);
    return;
  }
  const int middle = begin + (end - begin) / 2;
  if (residence.first < middle) {
    add(2 * node, begin, middle, residence, variable);
  }
  if (residence.last > middle) {
    add(2 * node + 1, middle, end, residence, variable);
  }
}

std::vector<int> Residents::of(int row) const {
  std::vector<int> residents;
  for (int node = size_ + row; node > 0; node /= 2) {
    residents.insert(residents.end(), below_[node].begin(), below_[node].end());
  }
  std::sort(residents.begin(), residents.end());
  return residents;
}

}  // namespace weft::assign
