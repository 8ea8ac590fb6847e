#include "planner/schedule/transfers.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace weft::schedule {
namespace {

// A moment of the simulated run: an action starts, or its result leaves for another rank.
struct Event {
  double time;
  int urgency;   // transfers go before the actions that start at the same moment
  int64_t turn;  // position in a dependency order; decides among equals
  int32_t node;
  int32_t consumer;  // of a transfer: the rank that receives; else -1

  bool operator<(const Event& other) const {
    return std::tie(time, urgency, turn) < std::tie(other.time, other.urgency, other.turn);
  }
};

// consumers[node] = the rank that must receive the node's result, or -1.
std::vector<int32_t> consumersOf(const Resolved& resolved) {
  std::vector<int32_t> consumers(resolved.actions.size(), -1);
  for (size_t node = 0; node < resolved.actions.size(); ++node) {
    const int32_t producer = resolved.producers[node];
    if (producer >= 0 && resolved.ranks[producer] != resolved.ranks[node]) {
      consumers[producer] = resolved.ranks[node];
    }
  }
  return consumers;
}

// A global order of actions and transfers: each action after what it reads, each transfer after its action. An action
// that takes no time and its transfer fall on one moment with others; `turn` keeps those apart.
std::vector<Event> globalOrder(const Resolved& resolved, const Simulation& simulation) {
  const std::vector<int32_t> consumers = consumersOf(resolved);
  std::vector<Event> events;
  for (size_t k = 0; k < resolved.order.size(); ++k) {
    const int32_t node = resolved.order[k];
    const int32_t rank = resolved.ranks[node];
    const size_t position = node - resolved.offsets[rank];
    const double start = simulation.starts[rank][position];
    const double end = simulation.ends[rank][position];
    const int64_t turn = static_cast<int64_t>(2 * k);
    events.push_back({start, 1, turn, node, -1});
    if (consumers[node] >= 0) {
      events.push_back({end, end > start ? 0 : 1, turn + 1, node, consumers[node]});
    }
  }
  std::sort(events.begin(), events.end());
  return events;
}

Queues placeWhenSent(const Table& table, const Resolved& resolved, const Simulation& simulation) {
  Queues queues(table.ranks());
  for (const Event& event : globalOrder(resolved, simulation)) {
    const int32_t rank = resolved.ranks[event.node];
    const Action& action = resolved.actions[event.node];
    if (event.consumer < 0) {
      queues[rank].push_back({StepKind::kAction, action, 0});
    } else {
      queues[rank].push_back({StepKind::kSend, action, event.consumer});
      queues[event.consumer].push_back({StepKind::kReceive, action, rank});
    }
  }
  return queues;
}

Queues placeBeforeUse(const Table& table, const Resolved& resolved) {
  const std::vector<int32_t> consumers = consumersOf(resolved);
  Queues queues(table.ranks());
  for (size_t node = 0; node < resolved.actions.size(); ++node) {
    const int32_t rank = resolved.ranks[node];
    const int32_t producer = resolved.producers[node];
    if (producer >= 0 && resolved.ranks[producer] != rank) {
      queues[rank].push_back({StepKind::kReceive, resolved.actions[producer], resolved.ranks[producer]});
    }
    queues[rank].push_back({StepKind::kAction, resolved.actions[node], 0});
    if (consumers[node] >= 0) {
      queues[rank].push_back({StepKind::kSend, resolved.actions[node], consumers[node]});
    }
  }
  return queues;
}

// Identity of a transfer. B and I of one pair never occur together, so the action names it.
using Key = std::tuple<int32_t, int32_t, ActionKind>;

Key keyOf(const Action& action) {
  return {action.stage, action.micro, action.kind};
}

// Where the steps of one transfer stand; -1 where they do not.
struct TransferPosition {
  int32_t sendRank = -1;
  int32_t sendAt = -1;
  int32_t receiveRank = -1;
  int32_t receiveAt = -1;
};

class Prover {
 public:
  Prover(const Table& table, const Resolved& resolved, const Queues& queues)
      : table_(table), resolved_(resolved), queues_(queues) {}

  absl::Status run() {
    if (queues_.size() != table_.orders.size()) {
      return refuse(absl::StrCat("there are ", queues_.size(), " queues for ", table_.ranks(), " ranks"));
    }
    WEFT_RETURN_IF_ERROR(locate());
    WEFT_RETURN_IF_ERROR(checkTransfers());
    return advance();
  }

 private:
  static absl::Status refuse(const std::string& text) { return absl::InvalidArgumentError(text); }

  std::string at(int32_t rank, int32_t position) const {
    return absl::StrCat("rank ", rank, ", step ", position, ": ", printStep(queues_[rank][position]));
  }

  // Finds all steps; actions must be those of the table, in its order.
  absl::Status locate() {
    for (int32_t rank = 0; rank < table_.ranks(); ++rank) {
      const std::vector<Action>& order = table_.orders[rank];
      size_t next = 0;
      for (size_t k = 0; k < queues_[rank].size(); ++k) {
        const Step& step = queues_[rank][k];
        const int32_t position = static_cast<int32_t>(k);
        if (step.kind == StepKind::kAction) {
          if (next == order.size() || !(order[next] == step.action)) {
            return refuse(absl::StrCat(at(rank, position), ", but the table has ",
                                       next == order.size() ? "no further action" : printAction(order[next]), " here"));
          }
          actionAt_.push_back(position);
          ++next;
          continue;
        }
        WEFT_RETURN_IF_ERROR(record(step, rank, position));
      }
      if (next < order.size()) {
        return refuse(absl::StrCat("rank ", rank, ": the queue ends before ", printAction(order[next])));
      }
    }
    return absl::OkStatus();
  }

  absl::Status record(const Step& step, int32_t rank, int32_t position) {
    TransferPosition& ends = transfers_[keyOf(step.action)];
    const bool sends = step.kind == StepKind::kSend;
    int32_t& where = sends ? ends.sendAt : ends.receiveAt;
    if (where >= 0) {
      return refuse(absl::StrCat(at(rank, position), " occurs a second time"));
    }
    where = position;
    (sends ? ends.sendRank : ends.receiveRank) = rank;
    return absl::OkStatus();
  }

  // Every transfer the table needs is there, at both ends, in the right place; and no other.
  absl::Status checkTransfers() {
    size_t needed = 0;
    for (size_t node = 0; node < resolved_.actions.size(); ++node) {
      const int32_t producer = resolved_.producers[node];
      if (producer < 0 || resolved_.ranks[producer] == resolved_.ranks[node]) {
        continue;
      }
      ++needed;
      const int32_t from = resolved_.ranks[producer];
      const int32_t to = resolved_.ranks[node];
      const TransferPosition& ends = transfers_[keyOf(resolved_.actions[producer])];
      const std::string name = absl::StrCat("the result of ", printAction(resolved_.actions[producer]), ", from rank ",
                                            from, " to rank ", to);
      if (ends.sendRank != from || ends.receiveRank != to || queues_[from][ends.sendAt].peer != to ||
          queues_[to][ends.receiveAt].peer != from) {
        return refuse(absl::StrCat(name, ", has no matching send and receive"));
      }
      if (ends.sendAt < actionAt_[producer]) {
        return refuse(absl::StrCat(name, ", is sent before it is computed: ", at(from, ends.sendAt)));
      }
      if (ends.receiveAt > actionAt_[node]) {
        return refuse(absl::StrCat(name, ", is received after its use: ", at(to, ends.receiveAt)));
      }
    }
    if (needed != transfers_.size()) {
      return refuse(absl::StrCat("the queues hold ", transfers_.size(), " transfers, the table needs ", needed));
    }
    return absl::OkStatus();
  }

  // The rank on the other side, and where its step stands.
  std::pair<int32_t, int32_t> otherEnd(const Step& step) const {
    const TransferPosition& ends = transfers_.at(keyOf(step.action));
    return step.kind == StepKind::kSend ? std::pair(ends.receiveRank, ends.receiveAt)
                                        : std::pair(ends.sendRank, ends.sendAt);
  }

  // Runs the queues; a transfer happens when it heads both. What cannot be run is a cycle.
  absl::Status advance() {
    heads_.assign(queues_.size(), 0);
    std::vector<int32_t> ready;
    for (int32_t rank = 0; rank < table_.ranks(); ++rank) {
      ready.push_back(rank);
    }
    while (!ready.empty()) {
      const int32_t rank = ready.back();
      ready.pop_back();
      while (!ended(rank)) {
        const Step& step = queues_[rank][heads_[rank]];
        if (step.kind != StepKind::kAction) {
          const auto [other, position] = otherEnd(step);
          if (heads_[other] != position) {
            break;
          }
          ++heads_[other];
          ready.push_back(other);
        }
        ++heads_[rank];
      }
    }
    for (int32_t rank = 0; rank < table_.ranks(); ++rank) {
      if (!ended(rank)) {
        return describeCycle(rank);
      }
    }
    return absl::OkStatus();
  }

  bool ended(int32_t rank) const { return heads_[rank] == static_cast<int32_t>(queues_[rank].size()); }

  absl::Status describeCycle(int32_t rank) const {
    std::vector<int32_t> path;
    while (std::find(path.begin(), path.end(), rank) == path.end()) {
      path.push_back(rank);
      rank = otherEnd(queues_[rank][heads_[rank]]).first;
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), rank));
    std::string text = "the transfers deadlock; these wait for each other in a circle:";
    for (const int32_t member : path) {
      const auto [other, position] = otherEnd(queues_[member][heads_[member]]);
      absl::StrAppend(&text, "\n  ", at(member, heads_[member]), ", which waits for step ", position, " of rank ",
                      other, ", behind ", printStep(queues_[other][heads_[other]]));
    }
    return refuse(absl::StrCat(text, "\nplace each receive where the sender's global order has the send"));
  }

  const Table& table_;
  const Resolved& resolved_;
  const Queues& queues_;
  std::map<Key, TransferPosition> transfers_;
  std::vector<int32_t> actionAt_;  // by node: its position in the queue
  std::vector<int32_t> heads_;
};

}  // namespace

std::string printStep(const Step& step) {
  switch (step.kind) {
    case StepKind::kAction:
      return printAction(step.action);
    case StepKind::kSend:
      return absl::StrCat("SEND ", printAction(step.action), " to rank ", step.peer);
    case StepKind::kReceive:
      return absl::StrCat("RECV ", printAction(step.action), " from rank ", step.peer);
  }
  return "";
}

absl::StatusOr<Queues> placeTransfers(const Table& table, const Times& times, ReceivePlacement placement) {
  WEFT_ASSIGN_OR_RETURN(Simulation simulation, simulate(table, times));
  WEFT_ASSIGN_OR_RETURN(Resolved resolved, resolve(table));
  return placement == ReceivePlacement::kWhenSent ? placeWhenSent(table, resolved, simulation)
                                                  : placeBeforeUse(table, resolved);
}

absl::Status prove(const Table& table, const Queues& queues) {
  WEFT_ASSIGN_OR_RETURN(Resolved resolved, resolve(table));
  return Prover(table, resolved, queues).run();
}

}  // namespace weft::schedule
