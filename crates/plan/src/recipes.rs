//! Recipes that the program carries: commands for one question, where they come from, and what their tables mean.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use crate::config::ConfigFile;
use crate::nodes::Nodes;

macro_rules! carried {
    ($($name:literal)*) => {
        /// The names of the recipes and their files.
        const CARRIED: &[(&str, &str)] = &[$(
            ($name, include_str!(concat!("../../../recipes/", $name, ".toml")))
        ),*];
    };
}

carried! { "first-day" "kv-cache" "experts" "incast" "storage" "qp-scaling" "interference" }

/// Begins the path of a stage's file of flows: `--config recipe:kv-cache/pairwise`.
const SCHEME: &str = "recipe:";

/// Commands that answer a question together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    #[serde(skip)]
    pub name: &'static str,
    /// The question that its commands answer.
    pub title: String,
    /// What it is modelled on.
    pub source: String,
    /// How to read its tables.
    pub meaning: String,
    #[serde(rename = "stage")]
    pub stages: Vec<RecipeStage>,
}

/// One command of a recipe.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecipeStage {
    pub name: String,
    /// How long it takes on the embedded device of a machine with two cores, at most.
    seconds: u64,
    /// What a person types behind `rocebench`.
    pub run: String,
    /// It compares the devices of a node: one is not enough.
    #[serde(default)]
    pub rails: bool,
    /// The file of flows that `run` names by `recipe:NAME/STAGE`.
    #[serde(default)]
    pub config: Option<String>,
}

impl Recipe {
    pub fn names() -> impl Iterator<Item = &'static str> {
        CARRIED.iter().map(|(name, _)| *name)
    }

    /// All that the program carries; a test reads each.
    pub fn carried() -> impl Iterator<Item = Recipe> {
        CARRIED.iter().filter_map(|(name, text)| {
            let recipe: Recipe = toml::from_str(text).ok()?;
            Some(Recipe { name, ..recipe })
        })
    }

    pub fn from_name(name: &str) -> Option<Recipe> {
        Recipe::carried().find(|recipe| recipe.name == name)
    }

    /// How long all stages take together, about.
    pub fn takes(&self) -> Duration {
        self.stages.iter().map(RecipeStage::takes).sum()
    }
}

impl RecipeStage {
    pub fn takes(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    /// Whether it is between more nodes than two ends.
    pub fn needs_nodes(&self) -> bool {
        self.run.split_whitespace().any(|word| word == "--nodes")
    }
}

/// The file of flows of a recipe's stage, by `recipe:NAME/STAGE`; `None` of any other path.
pub fn config_of(path: &Path) -> Option<String> {
    let (recipe, stage) = path.to_str()?.strip_prefix(SCHEME)?.split_once('/')?;
    let recipe = Recipe::from_name(recipe)?;
    recipe.stages.into_iter().find(|it| it.name == stage)?.config
}

/// A recipe's nodes are `node0`, `node1` …: the first, the second … of those that are given.
pub fn place_nodes(file: &mut ConfigFile, nodes: &Nodes) {
    let names = nodes.names();
    for end in file.flows.iter_mut().flat_map(|flow| [&mut flow.from, &mut flow.to]).flatten() {
        let number = end.strip_prefix("node").and_then(|number| number.parse::<usize>().ok());
        if let Some(name) = number.and_then(|number| names.get(number)) {
            end.clone_from(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_below_recipes_is_carried_and_read() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../recipes");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let mut carried: Vec<String> = Recipe::names().map(|name| format!("{name}.toml")).collect();
        files.sort();
        carried.sort();
        assert_eq!(files, carried);
        for (name, text) in CARRIED {
            let recipe: Recipe = toml::from_str(text).unwrap();
            assert!(recipe.takes() <= Duration::from_secs(600), "{name}");
            assert!(recipe.source.contains("https://"), "{name}");
            for stage in &recipe.stages {
                let path = format!("{SCHEME}{name}/{}", stage.name);
                assert_eq!(stage.config.is_some(), stage.run.contains(&path), "{path}");
                assert_eq!(config_of(Path::new(&path)), stage.config);
            }
        }
        assert_eq!(config_of(Path::new("kv-cache/pairwise")), None);
        assert_eq!(config_of(Path::new("recipe:kv-cache/nothing")), None);
    }

    #[test]
    fn nodes_of_a_recipe_are_those_that_are_given() {
        let path = Path::new("recipe:kv-cache/many-to-one");
        let mut file = ConfigFile::parse(&config_of(path).unwrap(), path, &[]).unwrap();
        place_nodes(&mut file, &"a,b,c,d".parse().unwrap());
        let ends: Vec<_> = file
            .flows
            .iter()
            .map(|flow| (flow.from.as_deref().unwrap(), flow.to.as_deref().unwrap()))
            .collect();
        assert_eq!(ends, [("b", "a"), ("c", "a"), ("d", "a"), ("b", "a")]);
    }
}
