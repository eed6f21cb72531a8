;;; screens-sessions.el --- The Emacs in the screens of conversations  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What scripts/screens-sessions loads: Emacs as a user has it after
;; reading the README, and an agent that talks.

;;; Code:

;; A new home has no compiled code; compiling it would take the time of the session.
(setq native-comp-deferred-compilation nil
      native-comp-jit-compilation nil)

(require 'contexture)

(declare-function contexture-conversation-make-current "contexture-conversations" (session))

(defun screens-sessions-set-up ()
  "Set up the package as the README says."
  (setq inhibit-startup-screen t
        initial-scratch-message nil
        ring-bell-function #'ignore
        contexture-server-args '("--fixed-time" "1893456000"))
  (menu-bar-mode -1)
  (load-theme 'modus-vivendi t)
  (global-set-key (kbd "C-c x") 'contexture-command-map)
  (contexture-conversation-mode-line-mode))

(defun screens-sessions--say (role text &rest more)
  "Have ROLE say TEXT; MORE are further parameters of the message."
  (contexture-request 'add-message (append (list :role role :content text) more)))

(defun screens-sessions-talk (turns)
  "Talk for so many TURNS, as an agent that works on a parser does."
  (contexture-request 'configure-session '(:model "gpt-5"))
  (screens-sessions--say :system "You write Rust. Never touch src/generated.rs.")
  (contexture-request
   'add-item '(:manager "*session 1*" :content "pub fn parse(text: &str) -> Tree {\n}\n"
                  :metadata (:filename "/src/parser.rs" :start-line 12 :end-line 14)))
  (dotimes (turn turns)
    (contexture-request
     'process-turn
     (list :content (format "Step %d: make the lexer recovery of rule %d pass its test." turn
                            (% turn 5))))
    (screens-sessions--say
     :assistant "I read the file first."
     :tool-calls (list (list :id (format "call-%d" turn) :name "read_file"
                             :arguments (format "{\"path\": \"src/rule%d.rs\"}" (% turn 5)))))
    (screens-sessions--say
     :tool (format "fn rule%d() {\n%s}\n" (% turn 5)
                   (apply #'concat (make-list 12 "    expect(Token::Comma, \"a comma\");\n")))
     :tool-call-id (format "call-%d" turn))
    (screens-sessions--say
     :assistant (format "%s: src/rule%d.rs:%d now skips to the next comma."
                        (if (= 0 (% turn 4)) "ERROR: 1 test failed" "Done")
                        (% turn 5) (+ 10 turn)))
    (when (memq turn '(5 11 23))
      (contexture-request
       'build-window '(:max-tokens 1500 :query "lexer recovery of rule 3" :brief t
                        :sections (:system-prompt "Answer in one sentence."))))))

(defun screens-sessions-paste ()
  "Say something that fills most of the window."
  (dotimes (part 40)
    (screens-sessions--say :user (format "Part %d of the log:\n%s" (1+ part)
                                         (apply #'concat
                                                (make-list 330 "expected a comma, found a brace\n"))))
    (screens-sessions--say :assistant "It says the same thing over and over."))
  (screens-sessions--say :user "Then go on with rule 4.")
  (contexture-request 'open-session '(:name "release notes"))
  (screens-sessions--say :user "What is new in 0.2?")
  (contexture-conversation-make-current "parser rewrite"))

(defun screens-sessions-serve ()
  "Do what an agent's bridge and its hook do."
  (let ((id (plist-get (car (contexture-request 'list-items '(:manager "*session 1*")))
                       :id)))
    (contexture-request 'initialize '(:agent (:name "claude-code" :version "2.1.3"
                                                    :project "/home/me/src/parser")))
    (contexture-request
     'record-push `(:agent "claude" :agent-session "3f2a91" :project "/home/me/src/parser"
                    :items ((:id ,id :digest "a")) :tokens 12))
    (contexture-request 'push-next (list :id id :manager "*session 1*" :agent "claude"))))

(provide 'screens-sessions)
;;; screens-sessions.el ends here
