// SPDX-License-Identifier: Apache-2.0
#include "assemble/pipeline.h"

#include <fmt/format.h>
#include <once/open.h>
#include <once/pipeline.h>

#include <iterator>
#include <string_view>
#include <utility>

#include "base/secrets.h"
#include "base/url.h"
#include "open/look.h"
#include "open/shared_topic.h"

namespace once::assemble {
namespace {

// What the pipeline writes where it reads comes again: each message makes another, without end.
Status check_loop(const Plan& plan, const EmitTarget& target) {
  const auto shared = shared_topic(plan.source_url, target.to);
  if (!shared || !shared->is_certain) return {};
  return fail(plan.error_at(
      target.place, "config",
      fmt::format("{} is the topic {}, which this pipeline reads: what it writes there would come "
                  "again without end; name another topic",
                  shown_url(target.to), shared->name)));
}

Result<std::shared_ptr<const Recipe>> recipe_of(const Plan& plan) {
  for (const EmitTarget& target : plan.destinations()) ONCE_TRY(check_loop(plan, target));
  return Recipe::make(plan, ONCE_TRY(store_language_of(plan.store_url)));
}

// The error says where in the file the URL stands.
Result<std::vector<SinkTraits>> sinks_of(const Plan& plan) {
  std::vector<SinkTraits> sinks;
  for (const EmitTarget& target : plan.destinations()) {
    auto traits = sink_traits_of(target.to);
    if (!traits) {
      Error error = std::move(traits).error();
      error.text = fmt::format("{}: {}", plan.text_of(target.place), error.text);
      return fail(std::move(error));
    }
    sinks.push_back(std::move(*traits));
  }
  return sinks;
}

// A database that this run has made has no tables of its user.
Error with_made_file(Error error, const std::string& file) {
  if (!file.empty() && error.tag == "sql")
    error.text += fmt::format(
        "; the file {} did not exist before this run, which made it: make its tables, or name "
        "another in store.url",
        file);
  return error;
}

using OpenSource = Result<std::unique_ptr<Source>> (*)(std::string_view url);
Result<Parts> open_parts(const Plan& plan, operate::Patience& patience, OpenSource how,
                         SharedStores& stores) {
  Parts parts;
  parts.recipe = ONCE_TRY(recipe_of(plan));
  parts.source = ONCE_TRY(patience.until_there(the_source, [&] { return how(plan.source_url); }));
  parts.store =
      ONCE_TRY(patience.until_there(the_store, [&] { return stores.open(plan.store_url); }));
  parts.sinks = ONCE_TRY(sinks_of(plan));
  parts.promise = ONCE_TRY(verify(parts.source->traits(), parts.store.store->traits(),
                                  handler_of(parts.recipe), plan.options, parts.sinks));
  auto unchecked =
      patience.until_there(the_store, [&] { return parts.recipe->check(*parts.store.store); });
  if (!unchecked) return fail(with_made_file(std::move(unchecked).error(), parts.store.made_file));
  parts.unchecked = std::move(*unchecked);
  return parts;
}

// What a server quotes of a secret is stored nowhere, and sent nowhere.
PipelineOptions options_of(const Plan& plan) {
  PipelineOptions options = plan.options;
  Secrets secrets;
  plan.teach(secrets);
  options.redact = [secrets = std::move(secrets)](std::string_view text) {
    return secrets.redacted(text);
  };
  return options;
}

operate::Job job_of(const Plan& plan, const Parts& parts) {
  operate::Job job{.name = plan.file,
                   .source = *parts.source,
                   .store = *parts.store.store,
                   .handler = handler_of(parts.recipe),
                   .options = options_of(plan),
                   .source_url = plan.source_url,
                   .store_url = plan.store_url,
                   .relay_name = plan.relay_name,
                   .has_effects = !plan.steps.empty(),
                   .takes_turns = is_for_one_process(plan.source_url)};
  for (const EmitTarget& target : plan.destinations())
    job.destinations.push_back({target.to, target.destination, plan.text_of(target.place)});
  return job;
}

std::string_view word_of(StoreState state) {
  switch (state) {
    case StoreState::none: return "none";
    case StoreState::older: return "older";
    case StoreState::current: break;
  }
  return "current";
}

}  // namespace

std::string label_of(const Plan& plan) {
  return plan.name.empty() ? plan.file : fmt::format("{}, pipeline {}", plan.file, plan.name);
}

Status check_recipe(const Plan& plan) {
  ONCE_TRY(recipe_of(plan));
  return {};
}

Result<Opened> open(const Plan& plan, operate::Patience& patience, SharedStores& stores) {
  auto parts = std::make_shared<Parts>(ONCE_TRY(open_parts(plan, patience, open_source, stores)));
  operate::Job job = job_of(plan, *parts);
  return Opened{std::move(parts), std::move(job)};
}

Result<Checked> check(const Plan& plan, operate::Patience& patience, SharedStores& stores) {
  Checked checked{.parts = ONCE_TRY(open_parts(plan, patience, open_source, stores))};
  const SourceTraits source = checked.parts.source->traits();
  operate::Findings found = ONCE_TRY(operate::check_job(job_of(plan, checked.parts)));
  checked.findings.warnings = source.warnings;
  for (const SinkTraits& sink : checked.parts.sinks)
    checked.findings.warnings.insert(checked.findings.warnings.end(), sink.warnings.begin(),
                                     sink.warnings.end());
  std::move(found.warnings.begin(), found.warnings.end(),
            std::back_inserter(checked.findings.warnings));
  checked.findings.unchecked = checked.parts.unchecked;
  std::move(found.unchecked.begin(), found.unchecked.end(),
            std::back_inserter(checked.findings.unchecked));
  return checked;
}

operate::Json json_of(const Plan& plan, const Checked& checked) {
  const SourceTraits source = checked.parts.source->traits();
  operate::Json json = {{"promise", checked.parts.promise},
                        {"scope", plan.options.scope},
                        {"source", source.name},
                        {"store", checked.parts.store.store->traits().name},
                        {"partitions", source.partitions},
                        {"warnings", checked.findings.warnings},
                        {"steps", plan.steps.size()},
                        {"emits", plan.emits.size()},
                        {"park_to", nullptr},
                        {"later", plan.may_put_off()},
                        {"store_state", word_of(checked.parts.store.state)},
                        {"unchecked", checked.findings.unchecked}};
  if (plan.park) json["park_to"] = shown_url(plan.park->to);
  if (!plan.name.empty()) json["pipeline"] = plan.name;
  return json;
}

Result<std::vector<Rehearsed>> rehearse(const Plan& plan, std::size_t count,
                                        operate::Patience& patience, SharedStores& stores) {
  const Parts parts = ONCE_TRY(open_parts(plan, patience, open_source_to_look, stores));
  return once::rehearse(*parts.source, *parts.store.store, handler_of(parts.recipe),
                        options_of(plan), count);
}

Result<operate::SetAside> set_aside(const Plan& plan, const operate::SetAsideRequest& request,
                                    operate::Patience& patience, SharedStores& stores) {
  const auto source = ONCE_TRY(
      patience.until_there(the_source, [&] { return open_source_to_look(plan.source_url); }));
  const LookedAtStore store =
      ONCE_TRY(patience.until_there(the_store, [&] { return stores.open(plan.store_url); }));
  auto done = operate::set_aside(*source, *store.store, plan.options, request);
  if (done) return done;
  Error error = std::move(done).error();
  error.text = with_complete_hints(error.text, {.scope = plan.options.scope});
  return fail(std::move(error));
}

}  // namespace once::assemble
