#include "planner/explain/prices_json.h"

#include "runtime/base/json.h"

namespace weft {
namespace {

Json jsonOf(const std::vector<PricedPlan>& plans) {
  Json lines = Json::array();
  for (const PricedPlan& plan : plans) {
    Json line = {{"what", plan.what}};
    if (!plan.chosen.empty()) {
      line["chosen"] = plan.chosen;
    }
    line.update({{"other", plan.other},
                 {"step_seconds", plan.seconds},
                 {"costs_seconds", plan.costSeconds},
                 {"peak_bytes", plan.peakBytes},
                 {"fits", plan.fits}});
    lines.push_back(std::move(line));
  }
  return lines;
}

Json jsonOf(const std::vector<FrontierPoint>& points) {
  Json lines = Json::array();
  for (const FrontierPoint& point : points) {
    lines.push_back({{"limit", point.limit},
                     {"peak_bytes", point.peakBytes},
                     {"step_seconds", point.seconds},
                     {"plan", point.plan}});
  }
  return lines;
}

Json jsonOf(const DeparturePrices& prices) {
  Json departed = {{"within", prices.within}, {"words", prices.words}, {"from", prices.from}};
  if (prices.refusal.empty()) {
    departed.update({{"own", prices.own}, {"own_step_seconds", prices.ownSeconds}});
  } else {
    departed["refusal"] = prices.refusal;
  }
  departed.update({{"planned", prices.planned}, {"exact", prices.exact}});
  return {{"departures", jsonOf(prices.alone)}, {"departed", std::move(departed)}};
}

// An entry of an object; null where there is none.
Json entryOf(const Json& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  return json.is_object() && found != json.end() ? *found : Json();
}

std::string textAt(const Json& json, const char* key) {
  const Json entry = entryOf(json, key);
  return entry.is_string() ? entry.get<std::string>() : "";
}

double numberAt(const Json& json, const char* key) {
  const Json entry = entryOf(json, key);
  return entry.is_number() ? entry.get<double>() : 0;
}

int64_t bytesAt(const Json& json, const char* key) {
  const Json entry = entryOf(json, key);
  return entry.is_number_integer() ? entry.get<int64_t>() : 0;
}

std::vector<PricedPlan> plansAt(const Json& json, const char* key) {
  std::vector<PricedPlan> plans;
  for (const Json& line : entryOf(json, key)) {
    const Json fits = entryOf(line, "fits");
    plans.push_back({textAt(line, "what"), textAt(line, "chosen"), textAt(line, "other"),
                     numberAt(line, "step_seconds"), bytesAt(line, "peak_bytes"),
                     !fits.is_boolean() || fits.get<bool>(), numberAt(line, "costs_seconds")});
  }
  return plans;
}

bool flagAt(const Json& json, const char* key) {
  const Json entry = entryOf(json, key);
  return entry.is_boolean() && entry.get<bool>();
}

std::optional<DeparturePrices> departuresAt(const Json& json) {
  const Json departed = entryOf(json, "departed");
  if (!departed.is_object()) {
    return std::nullopt;
  }
  DeparturePrices prices;
  prices.alone = plansAt(json, "departures");
  for (const Json& word : entryOf(departed, "from")) {
    if (word.is_string()) {
      prices.from.push_back(word.get<std::string>());
    }
  }
  prices.within = bytesAt(departed, "within");
  prices.words = bytesAt(departed, "words");
  prices.own = textAt(departed, "own");
  prices.ownSeconds = numberAt(departed, "own_step_seconds");
  prices.refusal = textAt(departed, "refusal");
  prices.planned = bytesAt(departed, "planned");
  prices.exact = flagAt(departed, "exact");
  return prices;
}

}  // namespace

std::string otherPlansText(const OtherPlans& plans) {
  Json json = Json::object();
  if (plans.prices.asked > 0) {
    json["runner_up"] = jsonOf(plans.prices.runnerUps);
    json["pins"] = jsonOf(plans.prices.pins);
    json["margins"] = jsonOf(plans.prices.margins);
  }
  if (!plans.freedoms.empty()) {
    json["freedoms"] = jsonOf(plans.freedoms);
  }
  if (plans.departures) {
    json.update(jsonOf(*plans.departures));
  }
  if (!plans.frontier.empty()) {
    json["frontier"] = jsonOf(plans.frontier);
  }
  return json.empty() ? "" : json.dump();
}

OtherPlans parseOtherPlans(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  OtherPlans plans;
  plans.prices.runnerUps = plansAt(json, "runner_up");
  plans.prices.pins = plansAt(json, "pins");
  plans.prices.margins = plansAt(json, "margins");
  plans.freedoms = plansAt(json, "freedoms");
  plans.departures = departuresAt(json);
  for (const Json& point : entryOf(json, "frontier")) {
    plans.frontier.push_back({bytesAt(point, "limit"), bytesAt(point, "peak_bytes"), numberAt(point, "step_seconds"),
                              textAt(point, "plan")});
  }
  return plans;
}

}  // namespace weft
