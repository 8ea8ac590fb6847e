// Reading a decisions record from its text form.
#include <algorithm>
#include <array>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/layout/stage_mesh_text.h"
#include "planner/decisions.h"
#include "planner/schedule/table.h"
#include "planner/zero_levels.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

constexpr std::array kRunsIn = {RunsIn::kPrologue, RunsIn::kForward, RunsIn::kBackward, RunsIn::kUpdate};
constexpr std::array kGatherPolicies = {GatherPolicy::kNone, GatherPolicy::kOncePerStep, GatherPolicy::kEachCall};
constexpr std::array kOffloads = {Offload::kNone, Offload::kState};
// Numbers of operators, operands and results are small; larger ones are mistakes.
constexpr int64_t kMostOperators = int64_t{1} << 31;
constexpr int64_t kMostOperands = 1 << 16;

template <typename... Parts>
absl::Status bad(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// The error of a part that has a text form of its own, with its place in the record.
absl::Status at(const std::string& where, const absl::Status& status) {
  return bad(where, ": ", std::string(status.message()));
}

absl::StatusOr<Layout> parseLayout(const Json& json, const std::string& where, const Mesh& mesh) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, jsonText(json, where));
  absl::StatusOr<Layout> layout = Layout::parse(text, mesh);
  return layout.ok() ? layout : at(where, layout.status());
}

// Axes are written as a layout of one dimension: "[{dp,tp}]".
absl::StatusOr<AxisList> parseAxes(const Json& json, const std::string& where, const Mesh& mesh) {
  WEFT_ASSIGN_OR_RETURN(const Layout layout, parseLayout(json, where, mesh));
  if (layout.dimensions() != 1 || layout.isPartial() || layout.hasPad()) {
    return bad(where, ": found ", shownJson(json), ", expected the axes of one dimension, such as [{dp,tp}]");
  }
  return layout.dim(0);
}

// Entries that are named by a number: results, meshes.
absl::StatusOr<int64_t> parseNumber(const std::string& name, const std::string& where, int64_t most) {
  const absl::StatusOr<int64_t> number = parseInteger(name, {0, most});
  // Only one spelling: "7" and "07" would be two entries for the same.
  if (!number.ok() || absl::StrCat(*number) != name) {
    return bad(where, " has an entry '", name, "'; expected an integer from 0 to ", most);
  }
  return number;
}

// Written in seconds.
absl::StatusOr<Picoseconds> jsonTime(const Json& json, const std::string& where) {
  WEFT_ASSIGN_OR_RETURN(const double seconds, jsonReal(json, where));
  return seconds < 0 ? absl::StatusOr<Picoseconds>(bad(where, ": found ", seconds, ", expected no less than 0"))
                     : picosecondsOf(seconds);
}

absl::StatusOr<RecomputePrice> readPrice(JsonObject& entry) {
  RecomputePrice price;
  WEFT_ASSIGN_OR_RETURN(const Json* given, entry.mapOr("recompute_price"));
  if (given->empty()) {
    return price;
  }
  WEFT_ASSIGN_OR_RETURN(JsonObject object, JsonObject::of(*given, entry.where("recompute_price")));
  WEFT_ASSIGN_OR_RETURN(price.bytes, object.integer("bytes"));
  WEFT_ASSIGN_OR_RETURN(const Json* seconds, object.any("seconds"));
  WEFT_ASSIGN_OR_RETURN(price.time, jsonTime(*seconds, object.where("seconds")));
  WEFT_RETURN_IF_ERROR(object.finish());
  return price;
}

// What a record will say one day. Until then its one value goes without saying, and every other is refused.
struct Unbuilt {
  const char* key;
  Json only;  // null: none
  const char* why;
};

const std::vector<Unbuilt>& unbuilt() {
  static const auto* const keys = new std::vector<Unbuilt>{
      {"residence", "device", "only the optimizer's state leaves the device, by the record's offload"},
      {"queue", 0, "a rank runs one thing at a time"},
      {"start", nullptr, "a collective starts and ends where it stands"},
      {"wait", nullptr, "a collective starts and ends where it stands"},
      {"sequence", nullptr, "only the batch is cut into parts of a step, by micro-batches"},
      {"copies", nullptr, "a parameter is stored once, with the type of the program"},
      {"stored_by", nullptr, "another program over the same store lays parameters out as its own record says"},
  };
  return *keys;
}

absl::Status refuseUnbuilt(JsonObject& entry) {
  for (const auto& [key, only, why] : unbuilt()) {
    if (!entry.has(key)) {
      continue;
    }
    WEFT_ASSIGN_OR_RETURN(const Json* found, entry.any(key));
    if (only.is_null() || *found != only) {
      return bad(entry.where(key), ": found ", found->dump(), "; ", why,
                 only.is_null() ? "; leave it out" : absl::StrCat("; expected ", only.dump(), ", or nothing"));
    }
  }
  return absl::OkStatus();
}

// Reads one record. What comes later is checked against what comes before: stages against the schedule, layouts against
// the meshes.
class Reader {
 public:
  absl::StatusOr<Decisions> read(const Json& json) {
    WEFT_ASSIGN_OR_RETURN(JsonObject record, JsonObject::of(json, ""));
    WEFT_ASSIGN_OR_RETURN(const std::string mesh, record.text("mesh"));
    absl::StatusOr<Mesh> parsed = Mesh::parse(mesh);
    if (!parsed.ok()) {
      return at("mesh", parsed.status());
    }
    decisions_.mesh = *std::move(parsed);
    WEFT_ASSIGN_OR_RETURN(decisions_.zero, record.integer("zero", {0, kMostZeroLevel}));
    WEFT_RETURN_IF_ERROR(readPrecision(record));
    WEFT_ASSIGN_OR_RETURN(decisions_.overlap, record.booleanOr("overlap", false));
    WEFT_ASSIGN_OR_RETURN(const std::string offload, record.textOr("offload", "none"));
    WEFT_ASSIGN_OR_RETURN(decisions_.offload, jsonWord(kOffloads, offloadName, offload, "offload"));
    if (record.has("gather_bucket")) {
      WEFT_ASSIGN_OR_RETURN(decisions_.gatherBucket, record.integer("gather_bucket", {1, INT64_MAX}));
    }
    WEFT_RETURN_IF_ERROR(readSchedule(record));
    WEFT_RETURN_IF_ERROR(readMeshes(record));
    meshes_ = decisions_.meshes();
    WEFT_RETURN_IF_ERROR(readEach(record, "rewrites", &Reader::readRewrite));
    WEFT_RETURN_IF_ERROR(readEach(record, "arguments", &Reader::readArgument));
    WEFT_RETURN_IF_ERROR(readEach(record, "operators", &Reader::readOperator));
    if (record.has("reshards")) {
      WEFT_RETURN_IF_ERROR(readEach(record, "reshards", &Reader::readReshard));
    }
    WEFT_RETURN_IF_ERROR(readForPeople(record));
    WEFT_RETURN_IF_ERROR(record.finish());
    return std::move(decisions_);
  }

 private:
  using ReadEntry = absl::Status (Reader::*)(JsonObject&);

  absl::Status readEach(JsonObject& record, const std::string& name, ReadEntry readEntry) {
    WEFT_ASSIGN_OR_RETURN(const Json* list, record.list(name));
    for (size_t i = 0; i < list->size(); ++i) {
      WEFT_ASSIGN_OR_RETURN(JsonObject entry, JsonObject::of((*list)[i], absl::StrCat(name, "[", i, "]")));
      WEFT_RETURN_IF_ERROR((this->*readEntry)(entry));
      WEFT_RETURN_IF_ERROR(refuseUnbuilt(entry));
      WEFT_RETURN_IF_ERROR(entry.finish());
    }
    return absl::OkStatus();
  }

  absl::Status readPrecision(JsonObject& record) {
    if (record.has("precision")) {
      WEFT_ASSIGN_OR_RETURN(const std::string name, record.text("precision"));
      decisions_.precision = parsePrecision(name);
      return decisions_.precision ? absl::OkStatus() : bad("precision: found '", name, "', expected bf16 or f16");
    }
    return absl::OkStatus();
  }

  absl::Status readSchedule(JsonObject& record) {
    if (!record.has("schedule")) {
      return absl::OkStatus();
    }
    WEFT_ASSIGN_OR_RETURN(const Json* given, record.any("schedule"));
    WEFT_ASSIGN_OR_RETURN(JsonObject entry, JsonObject::of(*given, "schedule"));
    ScheduleDecision& schedule = decisions_.schedule;
    WEFT_ASSIGN_OR_RETURN(schedule.kind, entry.text("kind"));
    WEFT_RETURN_IF_ERROR(readSubmeshes(entry));
    const int64_t stages = static_cast<int64_t>(schedule.submeshes.size());
    WEFT_ASSIGN_OR_RETURN(schedule.virtualStages, entry.integer("virtual", {1, stages}));
    WEFT_ASSIGN_OR_RETURN(schedule.table, entry.textOr("table", ""));
    if (entry.has("considered")) {
      WEFT_ASSIGN_OR_RETURN(const Json* considered, entry.list("considered"));
      schedule.considered = considered->dump();
    }
    return entry.finish();
  }

  // The submesh of each stage: numbers from 0 without a gap, so no more than there are stages.
  absl::Status readSubmeshes(JsonObject& schedule) {
    const std::string where = schedule.where("submeshes");
    WEFT_ASSIGN_OR_RETURN(const Json* list, schedule.list("submeshes"));
    if (list->empty() || list->size() > static_cast<size_t>(schedule::kMaxIndex)) {
      return bad(where, ": found ", list->size(), " stages, expected 1 to ", schedule::kMaxIndex);
    }
    std::vector<int64_t>& submeshes = decisions_.schedule.submeshes;
    submeshes.clear();
    const int64_t most = static_cast<int64_t>(list->size()) - 1;
    for (size_t i = 0; i < list->size(); ++i) {
      WEFT_ASSIGN_OR_RETURN(const int64_t submesh,
                            jsonInteger((*list)[i], absl::StrCat(where, "[", i, "]"), {0, most}));
      submeshes.push_back(submesh);
    }
    const std::set<int64_t> distinct(submeshes.begin(), submeshes.end());
    submeshes_ = static_cast<int64_t>(distinct.size());
    return *distinct.rbegin() + 1 == submeshes_ ? absl::OkStatus()
                                                : bad(where, ": found [", absl::StrJoin(submeshes, ","),
                                                      "], expected every number from 0 to the greatest");
  }

  // The submeshes' own meshes, if they have some: one for each submesh of the schedule.
  absl::Status readMeshes(JsonObject& record) {
    WEFT_ASSIGN_OR_RETURN(const std::string text, record.textOr("stage_meshes", ""));
    if (text.empty()) {
      return absl::OkStatus();
    }
    absl::StatusOr<std::vector<Mesh>> meshes = parseStageMeshes(text, decisions_.mesh.microBatches());
    if (!meshes.ok()) {
      return at("stage_meshes", meshes.status());
    }
    decisions_.stageMeshes = *std::move(meshes);
    WEFT_ASSIGN_OR_RETURN(decisions_.stripes, record.integer("stripes", {1}));
    return static_cast<int64_t>(decisions_.stageMeshes.size()) == submeshes_
               ? absl::OkStatus()
               : bad("stage_meshes: found ", decisions_.stageMeshes.size(), " meshes, expected one for each of the ",
                     submeshes_, " submeshes of the schedule");
  }

  absl::StatusOr<int64_t> readStage(JsonObject& entry) const { return entry.integerOr("stage", 0, {0, lastStage()}); }
  int64_t lastStage() const { return static_cast<int64_t>(decisions_.schedule.submeshes.size()) - 1; }

  absl::Status readRewrite(JsonObject& entry) {
    Rewrite rewrite;
    if (entry.has("expand")) {
      WEFT_ASSIGN_OR_RETURN(rewrite.id, entry.integer("expand", {0, kMostOperators}));
      WEFT_ASSIGN_OR_RETURN(rewrite.of, entry.textOr("of", ""));
    } else if (entry.has("regroup")) {
      rewrite.kind = Rewrite::kRegroup;
      WEFT_ASSIGN_OR_RETURN(rewrite.id, entry.integer("regroup", {0, kMostOperators}));
      WEFT_ASSIGN_OR_RETURN(rewrite.groups, readGroups(entry));
    } else {
      rewrite.kind = Rewrite::kPrologue;
      WEFT_ASSIGN_OR_RETURN(rewrite.id, entry.integer("prologue", {0, kMostOperators}));
      WEFT_ASSIGN_OR_RETURN(const int64_t operand, entry.integer("operand", {0, kMostOperands}));
      rewrite.operand = static_cast<unsigned>(operand);
    }
    decisions_.rewrites.push_back(rewrite);
    return absl::OkStatus();
  }

  // Whether they are the terms of that sum, the rewrite itself says.
  static absl::StatusOr<std::vector<std::vector<unsigned>>> readGroups(JsonObject& entry) {
    WEFT_ASSIGN_OR_RETURN(const Json* list, entry.list("groups"));
    std::vector<std::vector<unsigned>> groups;
    for (size_t g = 0; g < list->size(); ++g) {
      const std::string where = absl::StrCat(entry.where("groups"), "[", g, "]");
      if (!(*list)[g].is_array()) {
        return bad(where, ": found ", (*list)[g].dump(), ", expected a list of terms");
      }
      std::vector<unsigned>& group = groups.emplace_back();
      for (const Json& term : (*list)[g]) {
        WEFT_ASSIGN_OR_RETURN(const int64_t number, jsonInteger(term, where, {0, kMostOperands}));
        group.push_back(static_cast<unsigned>(number));
      }
    }
    return groups;
  }

  static absl::StatusOr<GatherPolicy> readGather(JsonObject& entry) {
    WEFT_ASSIGN_OR_RETURN(const std::string gather, entry.textOr("gather", "none"));
    return jsonWord(kGatherPolicies, gatherPolicyName, gather, entry.where("gather"));
  }

  // Each later than the one before it, the first than `stage`.
  absl::StatusOr<std::vector<int64_t>> readLaterStages(JsonObject& entry, int64_t stage) const {
    std::vector<int64_t> later;
    if (!entry.has("later_stages")) {
      return later;
    }
    const std::string where = entry.where("later_stages");
    WEFT_ASSIGN_OR_RETURN(const Json* list, entry.list("later_stages"));
    for (size_t i = 0; i < list->size(); ++i) {
      WEFT_ASSIGN_OR_RETURN(stage, jsonInteger((*list)[i], absl::StrCat(where, "[", i, "]"), {stage + 1, lastStage()}));
      later.push_back(stage);
    }
    return later;
  }

  absl::Status readArgument(JsonObject& entry) {
    ArgumentDecision argument;
    WEFT_ASSIGN_OR_RETURN(argument.name, entry.text("name"));
    WEFT_ASSIGN_OR_RETURN(argument.stage, readStage(entry));
    WEFT_ASSIGN_OR_RETURN(argument.laterStages, readLaterStages(entry, argument.stage));
    WEFT_ASSIGN_OR_RETURN(const Json* layout, entry.any("layout"));
    WEFT_ASSIGN_OR_RETURN(argument.layout,
                          parseLayout(*layout, entry.where("layout"), meshes_.ofStage(argument.stage)));
    WEFT_ASSIGN_OR_RETURN(argument.gather, readGather(entry));
    WEFT_ASSIGN_OR_RETURN(argument.origin, entry.textOr("origin", ""));
    if (entry.has("zero")) {
      WEFT_ASSIGN_OR_RETURN(argument.zero, entry.integer("zero", {0, kMostZeroLevel}));
    }
    const std::string where = entry.where("elsewhere");
    WEFT_ASSIGN_OR_RETURN(const Json* elsewhere, entry.mapOr("elsewhere"));
    const int64_t most = static_cast<int64_t>(meshes_.ofSubmesh.size()) - 1;
    for (const auto& [name, text] : elsewhere->items()) {
      WEFT_ASSIGN_OR_RETURN(const int64_t mesh, parseNumber(name, where, most));
      WEFT_ASSIGN_OR_RETURN(argument.elsewhere[mesh],
                            parseLayout(text, absl::StrCat(where, ".", name), meshes_.withNumber(mesh)));
    }
    decisions_.arguments.push_back(std::move(argument));
    return absl::OkStatus();
  }

  absl::Status readOperator(JsonObject& entry) {
    OperatorDecision op;
    WEFT_ASSIGN_OR_RETURN(op.id, entry.integer("id", {0, kMostOperators}));
    WEFT_ASSIGN_OR_RETURN(op.label, entry.text("label"));
    WEFT_ASSIGN_OR_RETURN(const std::string runsIn, entry.text("runs_in"));
    WEFT_ASSIGN_OR_RETURN(op.runsIn, jsonWord(kRunsIn, runsInName, runsIn, entry.where("runs_in")));
    WEFT_ASSIGN_OR_RETURN(op.stage, readStage(entry));
    WEFT_ASSIGN_OR_RETURN(op.recompute, entry.booleanOr("recompute", false));
    WEFT_ASSIGN_OR_RETURN(op.recomputePrice, readPrice(entry));
    WEFT_ASSIGN_OR_RETURN(op.gather, readGather(entry));
    if (op.gather == GatherPolicy::kOncePerStep) {
      return bad(entry.where("gather"),
                 ": found once_per_step, expected none or each_call: each micro-batch makes its own");
    }
    WEFT_ASSIGN_OR_RETURN(op.batch, entry.textOr("batch", ""));
    WEFT_ASSIGN_OR_RETURN(op.perMicroBatch, entry.booleanOr("per_micro_batch", false));
    WEFT_ASSIGN_OR_RETURN(op.origin, entry.textOr("origin", ""));
    const Mesh& mesh = meshes_.ofStage(op.stage);
    WEFT_ASSIGN_OR_RETURN(const Json* axes, entry.map("axes"));
    for (const auto& [factor, text] : axes->items()) {
      WEFT_ASSIGN_OR_RETURN(op.axes[factor], parseAxes(text, absl::StrCat(entry.where("axes"), ".", factor), mesh));
    }
    WEFT_ASSIGN_OR_RETURN(const Json* results, entry.mapOr("results"));
    for (const auto& [name, text] : results->items()) {
      WEFT_ASSIGN_OR_RETURN(const int64_t index, parseNumber(name, entry.where("results"), kMostOperands));
      WEFT_ASSIGN_OR_RETURN(op.results[static_cast<unsigned>(index)],
                            parseLayout(text, absl::StrCat(entry.where("results"), ".", name), mesh));
    }
    decisions_.operators.push_back(std::move(op));
    return absl::OkStatus();
  }

  absl::Status readReshard(JsonObject& entry) {
    ReshardDecision reshard;
    WEFT_ASSIGN_OR_RETURN(reshard.id, entry.integer("id", {-1, kMostOperators}));
    WEFT_ASSIGN_OR_RETURN(const int64_t index, entry.integer("index", {0, kMostOperators}));
    reshard.index = static_cast<unsigned>(index);
    WEFT_ASSIGN_OR_RETURN(reshard.how, entry.text("how"));
    WEFT_ASSIGN_OR_RETURN(reshard.stage, readStage(entry));
    WEFT_ASSIGN_OR_RETURN(reshard.label, entry.textOr("label", ""));
    WEFT_ASSIGN_OR_RETURN(reshard.recompute, entry.boolean("recompute"));
    WEFT_ASSIGN_OR_RETURN(reshard.recomputePrice, readPrice(entry));
    decisions_.reshards.push_back(std::move(reshard));
    return absl::OkStatus();
  }

  // What only people and the tools that print it read.
  absl::Status readForPeople(JsonObject& record) {
    if (record.has("recompute")) {
      WEFT_ASSIGN_OR_RETURN(const Json* summary, record.map("recompute"));
      decisions_.recomputeSummary = summary->dump();
    }
    if (record.has("prices")) {
      WEFT_ASSIGN_OR_RETURN(const Json* prices, record.map("prices"));
      decisions_.prices = prices->dump();
    }
    WEFT_RETURN_IF_ERROR(readTexts(record, "conflicts", decisions_.conflicts));
    WEFT_RETURN_IF_ERROR(readTexts(record, "notes", decisions_.notes));
    return record.has("prediction") ? readPrediction(record) : absl::OkStatus();
  }

  static absl::Status readTexts(JsonObject& record, const std::string& name, std::vector<std::string>& texts) {
    WEFT_ASSIGN_OR_RETURN(const Json* list, record.listOr(name));
    for (size_t i = 0; i < list->size(); ++i) {
      WEFT_ASSIGN_OR_RETURN(texts.emplace_back(), jsonText((*list)[i], absl::StrCat(name, "[", i, "]")));
    }
    return absl::OkStatus();
  }

  absl::Status readPrediction(JsonObject& record) {
    WEFT_ASSIGN_OR_RETURN(const Json* json, record.any("prediction"));
    WEFT_ASSIGN_OR_RETURN(JsonObject entry, JsonObject::of(*json, "prediction"));
    Prediction& prediction = decisions_.prediction.emplace();
    WEFT_ASSIGN_OR_RETURN(const Json* bytes, entry.list("peak_bytes"));
    for (size_t i = 0; i < bytes->size(); ++i) {
      WEFT_ASSIGN_OR_RETURN(prediction.peakBytes.emplace_back(),
                            jsonInteger((*bytes)[i], absl::StrCat("prediction.peak_bytes[", i, "]")));
    }
    WEFT_ASSIGN_OR_RETURN(const Json* seconds, entry.any("seconds"));
    WEFT_ASSIGN_OR_RETURN(prediction.time, jsonTime(*seconds, "prediction.seconds"));
    if (entry.has("bound_seconds")) {
      WEFT_ASSIGN_OR_RETURN(const Json* bound, entry.any("bound_seconds"));
      WEFT_ASSIGN_OR_RETURN(prediction.bound, jsonTime(*bound, "prediction.bound_seconds"));
    }
    return entry.finish();
  }

  Decisions decisions_;
  StageMeshes meshes_;
  int64_t submeshes_ = 1;
};

}  // namespace

absl::StatusOr<Decisions> parseDecisions(const std::string& text) {
  const absl::StatusOr<Json> json = parseJson(text);
  if (!json.ok()) {
    return at("decisions", json.status());
  }
  absl::StatusOr<Decisions> decisions = Reader().read(*json);
  return decisions.ok() ? std::move(decisions) : at("decisions", decisions.status());
}

}  // namespace weft
