//! Long dialogues with planted facts, updates of them and distractors, and a question for each
//! fact.
//!
//! The question seldom uses the words of the fact. Names stay, but other words may be synonyms.
//! Some answers name nothing from the question before them, some questions need two messages, and a
//! few share no word with the fact they ask for.

use contexture_program::internals::session::message::Role;

use crate::log::Log;
use crate::random::Random;

/// A question, and the indices of the messages that answer it.
pub(crate) struct Question {
    pub(crate) text: String,
    pub(crate) evidence: Vec<usize>,
    pub(crate) kind: &'static str,
}

/// A dialogue and its questions.
pub(crate) struct Dialogue {
    pub(crate) log: Log,
    pub(crate) questions: Vec<Question>,
}

/// A property: sentences that tell it, questions with the same words, questions with other words,
/// and values.
struct Property {
    word: &'static str,
    told: &'static [&'static str],
    asked: &'static [&'static str],
    paraphrased: &'static [&'static str],
    values: &'static [&'static str],
}

const NAMES: &[&str] = &[
    "Marta", "Jonas", "Priya", "Kenji", "Lucia", "Omar", "Greta", "Tobias", "Ines", "Rafael",
    "Noor", "Callum", "Sofia", "Anton", "Mei", "Dario", "Freya", "Hassan", "Ilse", "Pavel",
];
const PROPERTIES: &[Property] = &[
    Property {
        word: "birthday",
        told: &[
            "{n} has her birthday on {v}, so we are planning a dinner.",
            "By the way, the birthday of {n} falls on {v} this year.",
        ],
        asked: &["When is the birthday of {n}?", "On which date is {n}'s birthday?"],
        paraphrased: &["When was {n} born?", "On what day does {n} turn a year older?"],
        values: &[
            "the 3rd of March",
            "the 19th of June",
            "the 27th of October",
            "New Year's Eve",
            "the 8th of August",
        ],
    },
    Property {
        word: "car",
        told: &[
            "{n} finally bought a car, {v}, and drives it everywhere.",
            "Did I tell you? The new car of {n} is {v}.",
        ],
        asked: &["Which car does {n} drive?", "What car did {n} buy?"],
        paraphrased: &["What vehicle is {n} on the road with?", "What does {n} commute in?"],
        values: &[
            "a green Saab",
            "an old Volvo estate",
            "a tiny Fiat",
            "a silver Toyota hybrid",
            "a red pickup",
        ],
    },
    Property {
        word: "job",
        told: &[
            "{n} started a new job as {v} last week.",
            "So {n} got the job: {v}, starting at once.",
        ],
        asked: &["What is the new job of {n}?", "As what did {n} start a job?"],
        paraphrased: &["What does {n} do for a living?", "Where did the career of {n} go?"],
        values: &[
            "a nurse at the county clinic",
            "a translator for the museum",
            "an arborist",
            "a bus driver",
            "a sound engineer",
        ],
    },
    Property {
        word: "allergy",
        told: &[
            "Careful with the menu: {n} has an allergy to {v}.",
            "{n} told me about an allergy, it is {v} this time.",
        ],
        asked: &["What allergy does {n} have?", "To what does {n} have an allergy?"],
        paraphrased: &["Which food must {n} stay away from?", "What makes {n} ill when eaten?"],
        values: &["hazelnuts", "shellfish", "sesame", "strawberries", "celery"],
    },
    Property {
        word: "flight",
        told: &[
            "The flight of {n} lands at {v} on Friday.",
            "{n} sent the booking, her flight arrives at {v}.",
        ],
        asked: &["When does the flight of {n} land?", "At what time does {n}'s flight arrive?"],
        paraphrased: &[
            "When should somebody pick {n} up at the airport?",
            "How late does {n} touch down?",
        ],
        values: &[
            "half past six",
            "ten in the evening",
            "noon sharp",
            "quarter to four",
            "five in the morning",
        ],
    },
    Property {
        word: "dog",
        told: &[
            "{n} adopted a dog from the shelter and named it {v}.",
            "The dog of {n} is called {v}, what a name.",
        ],
        asked: &["What is the dog of {n} called?", "How did {n} name the dog?"],
        paraphrased: &[
            "Which pet name did {n} come up with?",
            "What does {n} shout in the park to get the puppy back?",
        ],
        values: &["Biscuit", "Captain", "Mozart", "Pickle", "Thunder"],
    },
    Property {
        word: "apartment",
        told: &[
            "{n} found an apartment {v} and signs on Monday.",
            "The apartment that {n} is moving into is {v}.",
        ],
        asked: &["Where is the apartment of {n}?", "Which apartment did {n} find?"],
        paraphrased: &["Where will {n} be living?", "What is the new home of {n} like?"],
        values: &[
            "above the bakery",
            "near the old harbour",
            "on the ninth floor by the station",
            "opposite the library",
            "behind the brewery",
        ],
    },
    Property {
        word: "instrument",
        told: &[
            "{n} picked up an instrument again, {v} of all things.",
            "For the band {n} plays {v}, the instrument from school.",
        ],
        asked: &["Which instrument does {n} play?", "What instrument did {n} pick up?"],
        paraphrased: &["What does {n} practise for the concert?", "What music does {n} make?"],
        values: &["the bassoon", "the mandolin", "the vibraphone", "the cello", "the harmonica"],
    },
];
const UPDATES: &[&str] = &[
    "Small correction about {n} and the {w}: it is {v} after all.",
    "Things changed for {n}. The {w} is {v} now.",
    "Forget what I said about the {w} of {n}, it turned out to be {v}.",
];
const LEADS: &[&str] = &[
    "Any news on {n} and the {w}?",
    "What did you hear about the {w} of {n}?",
    "And {n}, how did it go with the {w}?",
];
const ANSWERS: &[&str] = &[
    "Yes! In the end {v}, which surprised me a little.",
    "It will be {v}, at least that is what I was told yesterday.",
    "Oh, {v}. Nobody had expected that.",
];
const DISTRACTORS: &[&str] = &[
    "I met {n} at the market and we talked about the weather for an hour.",
    "{n} asked whether anybody knows a good book on the history of bridges.",
    "Did {n} ever reply about the weekend trip? I want to reserve the huts.",
    "My neighbour also worries about the {w}, it keeps coming up lately.",
    "Somebody at work had trouble with a {w} and told the story twice.",
    "If {n} had asked me about the {w}, I would not have known what to say.",
    "{n} and {m} are organizing the summer party together, expect chaos.",
    "I still owe {n} a coffee for helping with the shelves.",
    "Why does everybody talk about {w} matters when I only want to eat?",
];
const CHAT: &[&str] = &[
    "The rain has not stopped since Tuesday and the cellar smells like a lake.",
    "I tried the recipe with lentils and it came out better than the one with rice.",
    "We should repaint the hall before the guests arrive, the yellow looks tired.",
    "My back hurts from carrying boxes, I am not made for this any more.",
    "There was a lovely film on television about lighthouse keepers in the north.",
    "The trains were late again, so I read half of my novel on the platform.",
    "Have you seen how early the blackbirds sing at this time of the year?",
    "I keep forgetting to water the plants, and they keep forgiving me.",
    "The council wants to close the swimming pool for repairs, until spring they say.",
    "Somebody left a box of old records in the stairwell, most are jazz.",
    "My phone died in the middle of the call, sorry for that.",
    "That sounds nice, tell me more when we see each other.",
    "I think so too, although last year was different in many ways.",
    "The soup needs more salt, but do not tell the cook.",
    "We walked along the river until the path ended at the mill.",
    "Let me think about it, I am not sure that I have the time.",
    "The new bakery sells rye bread that stays fresh for a week.",
    "They are digging up our street again, third time since the winter.",
];

/// Makes a dialogue of about `messages` messages.
pub(crate) fn dialogue(seed: u64, messages: usize) -> anyhow::Result<Dialogue> {
    let mut random = Random::new(seed);
    let mut exchanges = Vec::new();
    let mut pairs: Vec<(usize, usize)> =
        (0..NAMES.len()).flat_map(|name| (0..PROPERTIES.len()).map(move |at| (name, at))).collect();
    random.shuffle(&mut pairs);
    for &(name, property) in pairs.iter().take(messages / 15) {
        exchanges.push(plant(&mut random, NAMES[name], &PROPERTIES[property]));
    }
    spread(&mut random, exchanges, messages)
}

/// A fact: its sentences in order, the question about it, and the places of the evidence among the
/// sentences. The sentences stand next to each other if `adjacent`.
struct Fact {
    sentences: Vec<String>,
    adjacent: bool,
    question: String,
    evidence: Vec<usize>,
    kind: &'static str,
}

fn plant(random: &mut Random, name: &str, property: &Property) -> Fact {
    let fill = |template: &str, value: &str| {
        template.replace("{n}", name).replace("{w}", property.word).replace("{v}", value)
    };
    let value = random.of(property.values);
    let other = *property.values.iter().find(|other| **other != value).unwrap_or(&value);
    let direct = random.happens(0.5);
    let asked = if direct { random.of(property.asked) } else { random.of(property.paraphrased) };
    let told = fill(random.of(property.told), value);
    let kind = random.below(100);
    let question = fill(asked, "");
    match kind {
        0..32 => Fact {
            sentences: vec![told],
            adjacent: false,
            question,
            evidence: vec![0],
            kind: "told outright",
        },
        32..66 => {
            let sentences = vec![fill(random.of(LEADS), value), fill(random.of(ANSWERS), value)];
            Fact { sentences, adjacent: true, question, evidence: vec![1], kind: "told in reply" }
        }
        66..80 => {
            let sentences = vec![told, fill(random.of(UPDATES), other)];
            Fact { sentences, adjacent: false, question, evidence: vec![1], kind: "updated" }
        }
        80..90 => {
            let sentences = vec![told, fill(random.of(UPDATES), other)];
            let question = format!("How did the {} of {name} change?", property.word);
            Fact { sentences, adjacent: false, question, evidence: vec![0, 1], kind: "needs both" }
        }
        _ => {
            let friend = format!("My cousin in the north is {name}, in case you did not know.");
            let question = fill(asked, "").replace(name, "my cousin");
            Fact {
                sentences: vec![told, friend],
                adjacent: false,
                question,
                evidence: vec![0],
                kind: "named otherwise",
            }
        }
    }
}

/// Puts the facts in random places, in order, with small talk and distractors in between.
fn spread(random: &mut Random, facts: Vec<Fact>, messages: usize) -> anyhow::Result<Dialogue> {
    let mut slots: Vec<Vec<(usize, usize)>> = vec![Vec::new(); messages];
    for (number, fact) in facts.iter().enumerate() {
        let mut places: Vec<usize> =
            fact.sentences.iter().map(|_| random.below(messages)).collect();
        places.sort_unstable();
        for (sentence, place) in places.iter().enumerate() {
            let place = if fact.adjacent { places[0] } else { *place };
            slots[place].push((number, sentence));
        }
    }
    let mut log = Log::new("o200k")?;
    log.say(Role::System, "You are a friendly companion who remembers what was said.");
    let mut found: Vec<Vec<usize>> =
        facts.iter().map(|fact| vec![0; fact.sentences.len()]).collect();
    for slot in slots {
        for (number, sentence) in slot {
            found[number][sentence] = log.messages.len();
            let filler = random.happens(0.4).then(|| (random.of(CHAT)).to_owned());
            let text = facts[number].sentences[sentence].clone();
            speak(&mut log, &[Some(text), filler]);
        }
        let text = small_talk(random);
        speak(&mut log, &[Some(text)]);
    }
    let questions = facts.into_iter().zip(found).map(|(fact, found)| Question {
        text: fact.question,
        evidence: fact.evidence.iter().map(|at| found[*at]).collect(),
        kind: fact.kind,
    });
    Ok(Dialogue { questions: questions.collect(), log })
}

fn small_talk(random: &mut Random) -> String {
    let mut parts = Vec::new();
    for _ in 0..=random.below(3) {
        let template = if random.happens(0.35) { random.of(DISTRACTORS) } else { random.of(CHAT) };
        let word = PROPERTIES[random.below(PROPERTIES.len())].word;
        let text = template.replace("{n}", random.of(NAMES)).replace("{m}", random.of(NAMES));
        parts.push(text.replace("{w}", word));
    }
    parts.join(" ")
}

/// Adds a message. The two speakers take turns.
fn speak(log: &mut Log, parts: &[Option<String>]) {
    let role = if log.messages.len() % 2 == 1 { Role::User } else { Role::Assistant };
    let parts: Vec<&str> = parts.iter().flatten().map(String::as_str).collect();
    log.say(role, &parts.join(" "));
}
