//! What windows keep of values that change: after several compactions, the last value that somebody
//! stated is there, and no older one stands after it.

use super::{Window, WindowInput, build};
use crate::curation::section::{CountedText, Section, Sections};
use crate::curation::strategy::ALL;
use crate::curation::summary::{Extractive, SummarySource, SummaryText, summarize};
use crate::curation::testing::{Random, plain, said, summarize_before};
use crate::curation::unit::History;
use crate::session::message::{Message, Role};
use crate::testing::rounds;
use crate::tokens::Estimate;

/// Maximum size of a window, in tokens.
const WINDOW: u64 = 12_000;
/// Numbers of compactions after which is asked.
const LOOKS: [usize; 3] = [1, 3, 5];
fn chains() -> u64 {
    rounds(4, 8)
}
/// Number of messages in each session of a chain.
const LENGTH: usize = 80;
/// Number of newest messages that a summary leaves alone.
const RECENT: usize = 10;

struct Language {
    things: [&'static str; 6],
    /// Sentences that state a value: `T` stands for the thing, and `V` for the value.
    stated: [&'static str; 4],
    asked: &'static str,
    chatter: [&'static str; 4],
}

const LANGUAGES: [Language; 5] = [
    Language {
        things: [
            "the port of the test server",
            "the release date",
            "the monthly budget",
            "the cache size",
            "the review deadline",
            "the retry limit",
        ],
        stated: ["We set T to V.", "T: V", "Change of plan, T is V from today on.", "OK, V for T."],
        asked: "What is T?",
        chatter: [
            "I looked at the next part and it is fine so far, so I go on with the rest of it.",
            "The tests of this part run through, but two warnings are left to look at later.",
            "Could you also tidy up the comments while you are at it?",
            "Done; the figure 1734 in the log is only the number of lines.",
        ],
    },
    Language {
        things: [
            "der Port des Testservers",
            "das Datum der Freigabe",
            "das Monatsbudget",
            "die Größe des Zwischenspeichers",
            "die Frist der Durchsicht",
            "die Grenze für Wiederholungen",
        ],
        stated: [
            "Wir nehmen V für: T.",
            "T: V",
            "Doch anders, T ist ab heute V.",
            "Gut, T also V.",
        ],
        asked: "T, wie lautet der Wert?",
        chatter: [
            "Ich habe den nächsten Teil angesehen, bisher ist alles in Ordnung, ich mache weiter.",
            "Die Prüfungen dieses Teils laufen durch, zwei Warnungen bleiben für später übrig.",
            "Kannst du nebenbei auch die Kommentare aufräumen?",
            "Fertig; die 1734 im Protokoll ist nur die Zahl der Zeilen.",
        ],
    },
    Language {
        things: [
            "порт тестового сервера",
            "дата выпуска",
            "месячный бюджет",
            "размер кэша",
            "срок проверки",
            "предел повторов",
        ],
        stated: ["Берём V: T.", "T: V", "Планы изменились, теперь T V.", "Хорошо, T будет V."],
        asked: "T, какое значение?",
        chatter: [
            "Я посмотрел следующую часть, пока всё в порядке, продолжаю с остальным.",
            "Тесты этой части проходят, но остались два предупреждения на потом.",
            "Можешь заодно привести в порядок комментарии?",
            "Готово; число 1734 в журнале это только количество строк.",
        ],
    },
    Language {
        things: ["测试服务器的端口", "发布日期", "每月预算", "缓存大小", "审查期限", "重试上限"],
        stated: ["我们把T设为V。", "T：V", "计划有变，T从今天起是V。", "好的，T用V。"],
        asked: "T是多少？",
        chatter: [
            "我看了下一部分，目前没有问题，我继续处理剩下的内容。",
            "这一部分的测试都通过了，不过还有两个警告以后再看。",
            "你能顺便整理一下注释吗？",
            "完成了；日志里的1734只是行数。",
        ],
    },
    Language {
        things: [
            "テストサーバーのポート",
            "公開日",
            "月間予算",
            "キャッシュの大きさ",
            "査読の期限",
            "再試行の上限",
        ],
        stated: [
            "TをVにします。",
            "T：V",
            "予定を変えて、Tは今日からVです。",
            "はい、TはVですね。",
        ],
        asked: "Tはいくつですか？",
        chatter: [
            "次の部分を見ましたが、今のところ問題ないので残りを続けます。",
            "この部分のテストは通りましたが、警告が二つ残っているので後で見ます。",
            "ついでにコメントも整理してもらえますか？",
            "終わりました。ログの1734は行数にすぎません。",
        ],
    },
];

/// A chain of sessions in one language, with the values of each thing, the oldest first.
struct Chain {
    language: &'static Language,
    random: Random,
    messages: Vec<Message>,
    values: Vec<Vec<String>>,
    summary: Option<SummaryText>,
    /// Number of messages that the summary stands in for.
    folded: usize,
}

#[derive(Default, Clone, Copy)]
struct Found {
    asked: usize,
    last: usize,
    stale: usize,
}

impl Chain {
    fn new(language: &'static Language, seed: u64) -> Self {
        let values = vec![Vec::new(); language.things.len()];
        let (messages, random) = (Vec::new(), Random::new(seed));
        Self { language, random, messages, values, summary: None, folded: 0 }
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.random.below(from.len() as u64) as usize]
    }

    fn say(&mut self, role: Role, text: &str) {
        self.messages.push(said(self.messages.len() as u64 + 1, role, text));
    }

    /// Adds a session in which some values change, stated by the user or by the model.
    fn go_on(&mut self) {
        for _ in 0..LENGTH / 2 {
            for role in [Role::User, Role::Assistant] {
                let mut text = String::new();
                for _ in 0..1 + self.random.below(6) {
                    text += self.pick(&self.language.chatter.clone());
                    text.push(' ');
                }
                if self.random.below(5) == 0 {
                    text += &self.state();
                }
                self.say(role, text.trim_end());
            }
        }
    }

    fn state(&mut self) -> String {
        let thing = self.random.below(self.language.things.len() as u64) as usize;
        // No value is another's part.
        let count: usize = self.values.iter().map(Vec::len).sum();
        let value = format!("{}", 20_000 + 37 * count);
        self.values[thing].push(value.clone());
        let sentence = self.pick(&self.language.stated.clone());
        sentence.replace('T', self.language.things[thing]).replace('V', &value)
    }

    fn compact(&mut self) {
        let measure = plain();
        let end = self.messages.len() - RECENT;
        let messages: Vec<&Message> = self.messages[self.folded..end].iter().collect();
        let source = SummarySource {
            prior: self.summary.as_ref(),
            messages: &messages,
            turns: messages.len() as u64 / 2,
            measure: &measure,
            said_tokens: WINDOW / 20,
        };
        self.summary = Some(summarize(&source, &Extractive).unwrap());
        self.folded = end;
    }

    /// Asks for each thing, and looks at the window for the question.
    fn look(&mut self, with_query: bool, found: &mut Found) {
        let measure = plain();
        for (thing, values) in self.language.things.iter().zip(&self.values) {
            let Some((last, older)) = values.split_last() else { continue };
            let question = self.language.asked.replace('T', thing);
            let number = self.messages.len() as u64 + 1;
            let asked = said(number, Role::User, &question);
            let messages = self.messages.iter().chain([&asked]).collect();
            let mut history = History::new(messages, &measure);
            summarize_before(&mut history, self.folded, WINDOW);
            let summary = self.summary.as_ref();
            let text = summary.map(|summary| CountedText::new(summary.render(), &Estimate));
            let sections = Sections { summary: text, ..Sections::default() };
            let window = build(&WindowInput {
                sections: &sections,
                history: &history,
                phase: None,
                strategy: ALL[0],
                query: with_query.then_some(&*question),
                similarity: None,
                summary,
                max_tokens: WINDOW,
                previous: None,
                restored: &[],
                once: true,
            });
            let window = window.unwrap();
            assert!(window.tokens <= WINDOW);
            let all = text_of(&window, |_| true);
            found.asked += 1;
            found.last += usize::from(all.contains(&**last));
            // Messages stand in the order of time, the words of a summary the newest first.
            let said = text_of(&window, |section| section == Section::Messages);
            let told = text_of(&window, |section| section == Section::Summary);
            let newest = said.rfind(&**last);
            let is_after = |older: &String| said.rfind(&**older) > newest && newest.is_some();
            let first = told.find(&**last);
            let is_before = |older: &String| {
                first.is_some() && told.find(&**older) < first && told.contains(&**older)
            };
            let is_stale = older.iter().any(|older| is_after(older) || is_before(older));
            found.stale += usize::from(is_stale);
        }
    }
}

fn text_of(window: &Window, wanted: impl Fn(Section) -> bool) -> String {
    let parts = window.parts.iter().filter(|part| wanted(part.section));
    parts.map(|part| &*part.content).collect::<Vec<_>>().join("\n")
}

/// Returns the shares of last values that windows have, for each language and number of compactions.
fn kept(with_query: bool) -> Vec<[Found; LOOKS.len()]> {
    let of_language = |language: &'static Language| {
        let mut found = [Found::default(); LOOKS.len()];
        for seed in 1..=chains() {
            let mut chain = Chain::new(language, seed);
            for round in 1..=LOOKS[LOOKS.len() - 1] {
                chain.go_on();
                chain.compact();
                if let Some(at) = LOOKS.iter().position(|look| *look == round) {
                    chain.look(with_query, &mut found[at]);
                }
            }
        }
        found
    };
    LANGUAGES.iter().map(of_language).collect()
}

fn percent(found: Found) -> usize {
    found.last * 100 / found.asked.max(1)
}

#[test]
fn the_last_value_is_in_the_window_and_no_older_one_after_it() {
    for (at, found) in kept(true).iter().enumerate() {
        println!("language {at}, asked: {:?} %", found.map(percent));
        for found in found {
            assert!(found.asked >= 20, "only {} questions", found.asked);
            assert!(found.last * 100 >= found.asked * 95, "{} of {}", found.last, found.asked);
            assert_eq!(found.stale, 0, "an older value stands as the newest");
        }
    }
}

#[test]
fn without_a_question_no_older_value_stands_as_the_newest() {
    for (at, found) in kept(false).iter().enumerate() {
        println!("language {at}, not asked: {:?} %", found.map(percent));
        assert!(found.iter().all(|found| found.stale == 0));
    }
}
