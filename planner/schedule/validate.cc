#include "planner/schedule/validate.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status.h"

namespace weft::schedule {
namespace {

absl::Status refuse(const std::string& text) {
  return absl::InvalidArgumentError(text);
}

// "stage 2, micro-batch 3".
std::string pairText(int32_t stage, int32_t micro) {
  return absl::StrCat("stage ", stage, ", micro-batch ", micro);
}

absl::Status checkShape(const Table& table) {
  if (table.ranks() == 0 || table.stages() == 0) {
    return refuse("the table has no rank or no stage");
  }
  if (table.sequenceSlices < 1) {
    return refuse(absl::StrCat("sequence slices are ", table.sequenceSlices, "; a micro-batch has at least one"));
  }
  for (int32_t stage = 0; stage < table.stages(); ++stage) {
    const int32_t rank = table.stageToRank[stage];
    if (rank < 0 || rank >= table.ranks()) {
      return refuse(absl::StrCat("stage ", stage, " is said to live on rank ", rank, ", but the table has ranks 0 to ",
                                 table.ranks() - 1));
    }
  }
  for (int32_t rank = 0; rank < table.ranks(); ++rank) {
    if (table.orders[rank].empty()) {
      return refuse(absl::StrCat("rank ", rank, " has no action; leave the rank out or give it a stage"));
    }
  }
  return absl::OkStatus();
}

absl::Status checkPlace(const Table& table, int32_t rank, size_t position) {
  const Action& action = table.orders[rank][position];
  const auto here = [&] { return absl::StrCat("rank ", rank, ", position ", position, ": ", printAction(action)); };
  if (action.stage < 0 || action.stage >= table.stages()) {
    return refuse(
        absl::StrCat(here(), " names stage ", action.stage, ", but there are stages 0 to ", table.stages() - 1));
  }
  if (action.micro < 0 || action.micro >= kMaxIndex) {
    return refuse(absl::StrCat(here(), " names micro-batch ", action.micro, ", which is not in 0 to ", kMaxIndex - 1));
  }
  if (table.stageToRank[action.stage] != rank) {
    return refuse(absl::StrCat(here(), " is on the wrong rank: stage ", action.stage, " lives on rank ",
                               table.stageToRank[action.stage], "; move the action there"));
  }
  return absl::OkStatus();
}

// Positions of the four kinds of action of one (stage, micro-batch) on its rank; -1 for none.
struct Quad {
  int32_t at[4] = {-1, -1, -1, -1};
  int32_t of(ActionKind kind) const { return at[static_cast<int>(kind)]; }
};

std::string placed(const Quad& quad, ActionKind kind) {
  return absl::StrCat(std::string(1, kindLetter(kind)), " at position ", quad.of(kind));
}

absl::Status checkQuad(const Quad& quad, int32_t stage, int32_t micro, int32_t rank) {
  using enum ActionKind;
  const auto here = [&] { return absl::StrCat(pairText(stage, micro), " on rank ", rank); };
  auto has = [&](ActionKind kind) { return quad.of(kind) >= 0; };
  if (!has(kForward)) {
    return refuse(absl::StrCat(here(), ": no forward; add ", stage, "F", micro, " before its gradient"));
  }
  for (ActionKind half : {kInputGrad, kWeightGrad}) {
    if (has(kBackward) && has(half)) {
      return refuse(absl::StrCat(here(), ": a gradient is computed twice: ", placed(quad, kBackward),
                                 " is the whole of it, and ", placed(quad, half),
                                 " repeats a part; keep B alone, or I and W"));
    }
  }
  if (!has(kBackward) && has(kInputGrad) != has(kWeightGrad)) {
    const char* missing = has(kInputGrad) ? "W" : "I";
    return refuse(absl::StrCat(here(), ": ", has(kInputGrad) ? "I" : "W", " without ", missing, "; add ", stage,
                               missing, micro, ", or use B for both"));
  }
  if (!has(kBackward) && !has(kInputGrad)) {
    return refuse(absl::StrCat(here(), ": no gradient; add ", stage, "B", micro, ", or I and W"));
  }
  const ActionKind gradient = has(kBackward) ? kBackward : kInputGrad;
  if (quad.of(gradient) < quad.of(kForward)) {
    return refuse(absl::StrCat(here(), ": ", placed(quad, gradient), " comes before ", placed(quad, kForward),
                               "; the gradient needs the forward's activations"));
  }
  if (has(kWeightGrad) && quad.of(kWeightGrad) < quad.of(kInputGrad)) {
    return refuse(absl::StrCat(here(), ": ", placed(quad, kWeightGrad), " comes before ", placed(quad, kInputGrad),
                               "; I computes what W reads"));
  }
  return absl::OkStatus();
}

// One entry per action, sorted by stage, micro-batch and kind: memory follows the actions, not the numbers in them.
struct Entry {
  int32_t stage;
  int32_t micro;
  ActionKind kind;
  int32_t position;
  bool operator<(const Entry& other) const {
    return std::tie(stage, micro, kind, position) < std::tie(other.stage, other.micro, other.kind, other.position);
  }
};

std::vector<Entry> sortedEntries(const Table& table) {
  std::vector<Entry> entries;
  entries.reserve(table.actions());
  for (const std::vector<Action>& order : table.orders) {
    for (size_t k = 0; k < order.size(); ++k) {
      entries.push_back({order[k].stage, order[k].micro, order[k].kind, static_cast<int32_t>(k)});
    }
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

// Every (stage, micro-batch) in turn: none missing, none twice. On return quads[stage * micros + micro] is filled.
absl::Status collectQuads(const Table& table, int32_t micros, std::vector<Quad>& quads) {
  const std::vector<Entry> entries = sortedEntries(table);
  size_t next = 0;
  for (int32_t stage = 0; stage < table.stages(); ++stage) {
    for (int32_t micro = 0; micro < micros; ++micro) {
      const int32_t rank = table.stageToRank[stage];
      Quad quad;
      for (; next < entries.size() && entries[next].stage == stage && entries[next].micro == micro; ++next) {
        const Entry& entry = entries[next];
        int32_t& slot = quad.at[static_cast<int>(entry.kind)];
        if (slot >= 0) {
          const char* what = entry.kind == ActionKind::kForward ? ": the forward is computed twice: "
                                                                : ": a gradient is computed twice: ";
          return refuse(absl::StrCat(pairText(stage, micro), " on rank ", rank, what, placed(quad, entry.kind),
                                     " and again at position ", entry.position, "; remove one"));
        }
        slot = entry.position;
      }
      WEFT_RETURN_IF_ERROR(checkQuad(quad, stage, micro, rank));
      quads.push_back(quad);
    }
  }
  return absl::OkStatus();
}

// Sequence slices of one micro-batch: forward ascending, gradients descending, on every stage.
absl::Status checkSequenceSlices(const Table& table, int32_t micros, const std::vector<Quad>& quads) {
  if (micros % table.sequenceSlices != 0) {
    return refuse(absl::StrCat("the table has ", micros, " slices in all, not a multiple of the ", table.sequenceSlices,
                               " slices of a micro-batch"));
  }
  auto gradient = [](const Quad& quad) {
    return std::max(quad.of(ActionKind::kBackward), quad.of(ActionKind::kInputGrad));
  };
  for (size_t k = 1; k < quads.size(); ++k) {
    const int32_t micro = static_cast<int32_t>(k % micros);
    if (micro % table.sequenceSlices == 0) {
      continue;
    }
    const int32_t stage = static_cast<int32_t>(k / micros);
    if (quads[k].of(ActionKind::kForward) < quads[k - 1].of(ActionKind::kForward)) {
      return refuse(absl::StrCat("stage ", stage, ": forward of slice ", micro, " comes before that of slice ",
                                 micro - 1, " of the same micro-batch, whose keys and values it reads"));
    }
    if (gradient(quads[k]) > gradient(quads[k - 1])) {
      return refuse(absl::StrCat("stage ", stage, ": the gradient of slice ", micro - 1, " comes before that of slice ",
                                 micro, " of the same micro-batch, which adds to its keys and values"));
    }
  }
  return absl::OkStatus();
}

void number(const Table& table, Resolved& out) {
  out.offsets.push_back(0);
  for (int32_t rank = 0; rank < table.ranks(); ++rank) {
    out.actions.insert(out.actions.end(), table.orders[rank].begin(), table.orders[rank].end());
    out.offsets.push_back(static_cast<int32_t>(out.actions.size()));
    out.ranks.resize(out.actions.size(), rank);
  }
}

void findProducers(const Table& table, const std::vector<Quad>& quads, Resolved& out) {
  out.producers.assign(out.actions.size(), -1);
  for (size_t node = 0; node < out.actions.size(); ++node) {
    const Action& action = out.actions[node];
    const bool forwards = action.kind == ActionKind::kForward;
    const int32_t from = action.stage + (forwards ? -1 : 1);
    if (action.kind == ActionKind::kWeightGrad || from < 0 || from >= table.stages()) {
      continue;
    }
    const Quad& quad = quads[static_cast<size_t>(from) * out.micros + action.micro];
    const int32_t position = forwards ? quad.of(ActionKind::kForward)
                                      : std::max(quad.of(ActionKind::kBackward), quad.of(ActionKind::kInputGrad));
    out.producers[node] = out.offsets[table.stageToRank[from]] + position;
  }
}

// The ranks stand at heads[rank] and none can go on: follows waits until a rank comes twice.
absl::Status describeCycle(const Resolved& resolved, const std::vector<int32_t>& heads) {
  std::vector<int32_t> path;  // ranks
  int32_t rank = 0;
  while (heads[rank] == resolved.offsets[rank + 1]) {
    ++rank;
  }
  while (std::find(path.begin(), path.end(), rank) == path.end()) {
    path.push_back(rank);
    rank = resolved.ranks[resolved.producers[heads[rank]]];
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), rank));
  auto at = [&](int32_t node) { return node - resolved.offsets[resolved.ranks[node]]; };
  std::string text = "the table deadlocks; these wait for each other in a circle:";
  for (int32_t member : path) {
    const int32_t node = heads[member];
    const int32_t producer = resolved.producers[node];
    const int32_t other = resolved.ranks[producer];
    absl::StrAppend(&text, "\n  rank ", member, ", position ", at(node), ": ", printAction(resolved.actions[node]),
                    " waits for ", printAction(resolved.actions[producer]), ", at position ", at(producer), " of rank ",
                    other, ", after ", printAction(resolved.actions[heads[other]]));
  }
  return refuse(absl::StrCat(text, "\nmove one of the awaited actions forward in its rank's order"));
}

// Lets every rank run as far as it can; nodes come out in an order that respects all waits. A node's result is read by
// at most one action of a neighbor stage, so at most one rank waits for it.
absl::Status findOrder(Resolved& out) {
  const int32_t ranks = static_cast<int32_t>(out.offsets.size()) - 1;
  std::vector<int32_t> heads(out.offsets.begin(), out.offsets.end() - 1);
  std::vector<char> done(out.actions.size(), 0);
  std::vector<int32_t> waiter(out.actions.size(), -1);  // the rank that waits for this node
  std::vector<int32_t> ready;
  for (int32_t rank = ranks - 1; rank >= 0; --rank) {
    ready.push_back(rank);
  }
  out.order.reserve(out.actions.size());
  while (!ready.empty()) {
    const int32_t rank = ready.back();
    ready.pop_back();
    for (int32_t& head = heads[rank]; head < out.offsets[rank + 1]; ++head) {
      const int32_t producer = out.producers[head];
      if (producer >= 0 && !done[producer]) {
        waiter[producer] = rank;
        break;
      }
      done[head] = 1;
      out.order.push_back(head);
      if (waiter[head] >= 0) {
        ready.push_back(waiter[head]);
      }
    }
  }
  return out.order.size() == out.actions.size() ? absl::OkStatus() : describeCycle(out, heads);
}

}  // namespace

absl::StatusOr<Resolved> resolve(const Table& table) {
  WEFT_RETURN_IF_ERROR(checkShape(table));
  for (int32_t rank = 0; rank < table.ranks(); ++rank) {
    for (size_t k = 0; k < table.orders[rank].size(); ++k) {
      WEFT_RETURN_IF_ERROR(checkPlace(table, rank, k));
    }
  }
  Resolved out;
  out.micros = table.micros();
  std::vector<Quad> quads;
  WEFT_RETURN_IF_ERROR(collectQuads(table, out.micros, quads));
  WEFT_RETURN_IF_ERROR(checkSequenceSlices(table, out.micros, quads));
  number(table, out);
  findProducers(table, quads, out);
  WEFT_RETURN_IF_ERROR(findOrder(out));
  return out;
}

absl::Status validate(const Table& table) {
  return resolve(table).status();
}

}  // namespace weft::schedule
