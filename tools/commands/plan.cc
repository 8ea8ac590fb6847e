#include "tools/commands/plan.h"

#include <chrono>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "passes/compile.h"
#include "passes/logical/read_module.h"
#include "planner/check_request.h"
#include "planner/explain/freedom_prices.h"
#include "planner/explain/predicted_step.h"
#include "planner/explain/prices_json.h"
#include "planner/explain/ways_to_fit.h"
#include "planner/search/changed_graphs.h"
#include "planner/search/plan.h"
#include "runtime/base/file_writer.h"
#include "runtime/base/read_text.h"
#include "runtime/base/status.h"
#include "tools/analysis/predicted_trace.h"
#include "tools/commands/explain_code.h"
#include "tools/commands/flags.h"
#include "tools/commands/plan_ops.h"
#include "tools/commands/plan_table.h"
#include "tools/commands/prices_table.h"
#include "tools/commands/request_flags.h"

namespace weft::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kName[] = "plan";
constexpr char kUsage[] =
    "weft plan MODEL.mlir [flags]: MODEL.mlir is a logical module, as 00-input.mlir of a dump; in mode auto where "
    "--mode is not given; or weft plan --ops GRAPH.json [--effort F] [--json]: the strategies of a graph from "
    "elsewhere";

const std::vector<Flag>& planFlags() {
  static const std::vector<Flag> flags = [] {
    std::vector<Flag> all = requestFlags();
    all.push_back({"output", Flag::kOptional, "write the decisions there, for weft compile --decisions (also -o)"});
    all.push_back({"from", Flag::kOptional,
                   "begin from the decisions in this file (-o of before): no worse where they are what is asked for"});
    all.push_back({"precision", Flag::kOptional, "price values of 16 bits, bf16 or f16; they cannot be compiled yet"});
    all.push_back({"overlap", Flag::kSwitch,
                   "collectives run beside computation, on machines with 2 queues; it cannot be compiled yet"});
    all.push_back({"offload", Flag::kOptional,
                   "what lies in the host's memory: none, state (of the optimizer), or auto: where it pays; it cannot "
                   "be compiled yet"});
    all.push_back({"json", Flag::kSwitch, "print JSON"});
    all.push_back({"prices", Flag::kSwitch, "also print what other decisions, pins and a little more of each cost"});
    all.push_back({"frontier", Flag::kSwitch, "also print the best plans for less and less memory"});
    all.push_back({"freedoms", Flag::kSwitch, "also print what it costs to take each freedom from mode auto"});
    all.push_back({"trace", Flag::kOptional, "write the predicted step there, for chrome://tracing or Perfetto"});
    all.push_back({"as-code", Flag::kSwitch, "print the plan as lines of C++ for the program"});
    for (const Flag& flag : planOpsFlags()) {
      all.push_back(flag);
    }
    return all;
  }();
  return flags;
}

double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void print(const PlanSummary& summary, const SearchCost& cost, const Decisions& decisions, double building) {
  printSummary(summary);
  for (const std::string& note : decisions.notes) {
    std::cout << "note: " << note << "\n";
  }
  std::cout << "searched in " << cost.seconds << " s, the model asked " << cost.ticks
            << " times; the program graph was built in " << building << " s\n";
}

absl::StatusOr<std::optional<DType>> precisionOf(const Flags& flags) {
  const std::optional<DType> type = parsePrecision(flags.text("precision"));
  return flags.has("precision") && !type
             ? absl::InvalidArgumentError(absl::StrCat("--precision takes bf16 or f16, not '", flags.text("precision"),
                                                       "'; without it values are as the program has them"))
             : absl::StatusOr<std::optional<DType>>(type);
}

absl::StatusOr<std::string> recordIn(const std::string& file) {
  WEFT_ASSIGN_OR_RETURN(std::string text, readText(file));
  const absl::Status status = parseDecisions(text).status();
  return status.ok() ? absl::StatusOr<std::string>(std::move(text))
                     : absl::Status(status.code(), absl::StrCat(file, ": ", status.message(),
                                                                "; give a whole record, as of `weft plan -o`"));
}

void printJson(const PlanSummary& summary, const SearchCost& cost, const OtherPlans& others, const std::string& code) {
  Json json = jsonOf(summary);
  json["search"] = jsonOf(cost);
  if (const std::string text = otherPlansText(others); !text.empty()) {
    json.update(Json::parse(text));
  }
  if (!code.empty()) {
    json["code"] = code;
  }
  std::cout << json.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
}

PlanSummary summaryOf(const ClosedRequest& closed, const Machine& machine, const StepTimes& step) {
  const Decisions& decisions = closed.attempt.decisions;
  PlanSummary summary = summaryOf(decisions, parameterNames(*closed.graph));
  nameKinds(machine, decisions, summary);
  summary.memory = memoryOf(closed.attempt.submeshes);
  summary.time = timeParts(step.functions, summary.microBatches, summary.stepSeconds);
  return summary;
}

// The plan of a problem, which becomes the one that it answers: without the words that it departs from. `memory`: of
// all searches of one command.
absl::StatusOr<ClosedRequest> planOf(PlannerProblem& problem, OtherPlans& others, SearchMemory& memory) {
  const int64_t within = problem.request.departures;
  if (within == 0) {
    return closeRequest(problem.graphs, problem.request, {}, &memory);
  }
  WEFT_ASSIGN_OR_RETURN(DepartedPlan departed, departedPlan(problem.graphs, problem.request, {}, &memory));
  others.departures = departurePricesOf(departed, within);
  problem.graphs = std::move(departed.question.graphs);
  problem.request = std::move(departed.question.request);
  return std::move(departed.plan);
}

absl::Status askForOthers(const Flags& flags, const PlannerProblem& problem, const ClosedRequest& plan,
                          OtherPlans& others, SearchMemory& memory) {
  if (flags.has("prices")) {
    WEFT_ASSIGN_OR_RETURN(others.prices, pricesOf(problem.graphs, problem.request, plan, memory));
  }
  if (flags.has("freedoms")) {
    others.freedoms = freedomPricesOf(problem.graphs, problem.request, plan, memory);
  }
  if (flags.has("frontier")) {
    others.frontier = frontierOf(problem.graphs, problem.request, plan, memory);
  }
  return absl::OkStatus();
}

absl::Status run(const std::string& path, const Flags& flags) {
  WEFT_RETURN_IF_ERROR(flags.has("output") ? canWrite(flags.text("output")) : absl::OkStatus());
  mlir::DialectRegistry dialects;
  registerWeftDialects(dialects);
  mlir::MLIRContext context(dialects, mlir::MLIRContext::Threading::DISABLED);
  WEFT_ASSIGN_OR_RETURN(const std::string text, readText(path));
  const auto start = std::chrono::steady_clock::now();
  WEFT_ASSIGN_OR_RETURN(const mlir::OwningOpRef<mlir::ModuleOp> module, readModule(text, path, context));
  WEFT_RETURN_IF_ERROR(applyRequestFlags(*module, flags, Mode::kAuto));
  const ir::OperatorRegistry registry = ir::OperatorRegistry::builtin();
  WEFT_ASSIGN_OR_RETURN(PlannerProblem problem, plannerProblem(*module, registry));
  WEFT_ASSIGN_OR_RETURN(const std::optional<DType> precision, precisionOf(flags));
  problem.request.overlap = problem.request.overlap || flags.has("overlap");
  if (flags.has("from")) {
    WEFT_ASSIGN_OR_RETURN(problem.request.from, recordIn(flags.text("from")));
  }
  if (flags.has("offload")) {
    WEFT_ASSIGN_OR_RETURN(problem.request.offload, parseOffload(flags.text("offload")));
  }
  WEFT_RETURN_IF_ERROR(checkRequest(Request{problem.request, std::nullopt}));
  if (precision) {
    problem.graphs = inPrecision(problem.graphs, *precision);
  }
  // Built once for all numbers of micro-batches, unless operators depend on them.
  WEFT_RETURN_IF_ERROR(problem.graphs(problem.request.microBatches()).status());
  const double building = secondsSince(start);
  const auto searching = std::chrono::steady_clock::now();
  OtherPlans others;
  SearchMemory memory;
  absl::StatusOr<ClosedRequest> closed = planOf(problem, others, memory);
  if (!closed.ok()) {
    return plannerError(*module, closed.status());
  }
  problem.request.from.clear();  // other plans are what is found without it
  const SearchCost cost = {secondsSince(searching), closed->ticks, 0};
  Attempt& attempt = closed->attempt;
  attempt.decisions.precision = precision;
  if (!attempt.fits) {
    WEFT_ASSIGN_OR_RETURN(const MemoryLimits limits, memoryLimitsOf(problem.request));
    const std::vector<WayToFit> ways = waysToFit(problem.graphs, problem.request, *closed);
    return absl::ResourceExhaustedError(
        doesNotFitText(limits, closed->attempt.decisions, closed->attempt.peakBytes, ways));
  }
  WEFT_ASSIGN_OR_RETURN(const Machine machine, machineOf(problem.request));
  WEFT_ASSIGN_OR_RETURN(const StepTimes step, predictedStep(*closed->graph, attempt.decisions, machine));
  const PlanSummary summary = summaryOf(*closed, machine, step);
  WEFT_RETURN_IF_ERROR(askForOthers(flags, problem, *closed, others, memory));
  if (flags.has("output")) {
    Decisions record = attempt.decisions;
    record.prices = otherPlansText(others);
    WEFT_RETURN_IF_ERROR(writeFile(flags.text("output"), printDecisions(record)));
  }
  if (flags.has("trace")) {
    WEFT_ASSIGN_OR_RETURN(const std::string trace, traceOf(attempt.decisions, step));
    WEFT_RETURN_IF_ERROR(writeFile(flags.text("trace"), trace));
  }
  std::string code;
  if (flags.has("as-code")) {
    WEFT_ASSIGN_OR_RETURN(code, codeOf(problem, attempt.decisions));
  }
  if (flags.has("json")) {
    printJson(summary, cost, others, code);
  } else if (flags.has("as-code")) {
    std::cout << code;
  } else {
    print(summary, cost, attempt.decisions, building);
    printOtherPlans(others);
  }
  return absl::OkStatus();
}

// A graph from elsewhere names neither a model nor a machine: nothing else is asked about it.
absl::Status checkOpsAlone(const std::string& path, const Flags& flags) {
  if (!path.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("both a module, '", path, "', and --ops; give one of them"));
  }
  for (const Flag& flag : planFlags()) {
    if (flag.name != "ops" && flag.name != "effort" && flag.name != "json" && flags.has(flag.name)) {
      return absl::InvalidArgumentError(absl::StrCat("--", flag.name, " says nothing of the graph of --ops; drop it"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

int planCommand(int argc, char** argv) {
  if (wantsHelp(argc, argv)) {
    std::cout << flagHelp(kUsage, planFlags());
    return 0;
  }
  const std::string path = takePath(argc, argv);
  absl::StatusOr<Flags> flags = Flags::parse(planFlags(), argc, argv);
  if (flags.ok() && flags->has("ops")) {
    const absl::Status alone = checkOpsAlone(path, *flags);
    if (!alone.ok()) {
      return usageError(kName, alone);
    }
    const absl::Status solved = planOps(*flags);
    return solved.ok() ? 0 : fail(kName, solved);
  }
  if (flags.ok() && flags->has("effort")) {
    return usageError(kName, absl::InvalidArgumentError("--effort is for a graph of --ops"));
  }
  if (!flags.ok() || path.empty()) {
    return usageError(kName, flags.ok() ? absl::InvalidArgumentError("a module file is missing") : flags.status());
  }
  const absl::Status status = run(path, *flags);
  return status.ok() ? 0 : fail(kName, status);
}

}  // namespace weft::tools
