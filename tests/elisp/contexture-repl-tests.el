;;; contexture-repl-tests.el --- Tests of a conversation  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Asking, streaming, coming back after Emacs or the server went away,
;; what is around it.

;;; Code:

(require 'contexture-repl-test-helper)

;;;; Asking

(ert-deftest contexture-repl-shows-question-and-answer ()
  (contexture-repl-test-with '(("Use " "`car`" ".\n"))
    (contexture-repl-test-send "How do I take the first?")
    (should (equal (contexture-repl-test-shown)
                   "You
How do I take the first?

scripted
Use `car`.
scripted: 1200 tokens in, 34 out, cost 0.00094
"))
    (should (equal (contexture-repl--text) ""))
    (should (equal (contexture-repl-test-log)
                   '((:user "How do I take the first?") (:assistant "Use `car`.\n"))))))

(ert-deftest contexture-repl-shows-pieces-as-they-come ()
  (contexture-repl-test-with '(("One, " "two" hang))
    (contexture-repl-test-begin "Count" "One, two")
    (should (contexture-repl--busy-p))
    (should (equal (contexture-repl--mode-line-state) ":answering"))))

(ert-deftest contexture-repl-leaves-what-is-written-meanwhile ()
  (contexture-repl-test-with '(("One, " "two" hang))
    (contexture-repl-test-type "Count")
    (contexture-repl-send)
    (insert "and th")
    (contexture-ert-wait-for (string-search "One, two" (contexture-repl-test-shown)))
    (insert "en?")
    (should (equal (contexture-repl--text) "and then?"))
    (should (= (point) (point-max)))))

(ert-deftest contexture-repl-shows-what-the-server-does-first ()
  (contexture-repl-test-played
      `(((progress (:kind :status :text "summarized 12 turns"))
         (progress (:kind :retry :text "asked again in 2 s"))
         (progress (:kind :text :text "Well."))
         ,(contexture-repl-test-reply "Well.")))
    (contexture-repl-test-send "Go on")
    (should (string-match-p "Go on\nsummarized 12 turns\nasked again in 2 s\n\nscripted\nWell\\."
                            (contexture-repl-test-shown)))))

(ert-deftest contexture-repl-shows-a-wait-within-an-answer-at-once ()
  (contexture-repl-test-played
      '(((progress (:kind :text :text "Let me look."))
         (progress (:kind :tool-call :name "list-items" :arguments "{}"))
         (progress (:kind :retry :text "asked again in 2 s")) hang))
    (contexture-repl-test-begin "Go on" "asked again in 2 s")
    (should (contexture-repl--busy-p))
    (should (string-match-p "calls list-items.*\nasked again in 2 s\n\\'"
                            (contexture-repl-test-shown)))))

(ert-deftest contexture-repl-answer-with-a-wait-is-not-drawn-twice ()
  (contexture-repl-test-played
      `(((progress (:kind :text :text "One, "))
         (progress (:kind :retry :text "asked again in 2 s"))
         (progress (:kind :text :text "two."))
         ,(contexture-repl-test-reply "One, two.")))
    (contexture-repl-test-send "Count")
    (should (string-match-p "scripted\nOne, \nasked again in 2 s\ntwo\\.\nscripted:"
                            (contexture-repl-test-shown)))))

(ert-deftest contexture-repl-aligns-tables-with-and-without-markup ()
  (contexture-repl-test-with '(("| a | b |\n|---|" "---|\n| **c** | d |\n"))
    (cl-letf (((symbol-function 'window-max-chars-per-line) (lambda (&rest _) 100)))
      (contexture-repl-test-send "Compare")
      (contexture-repl--draw-all)
      (dolist (bar '("|" "    |" "|"))
        (contexture-repl-test-goto "| b |")
        (should (equal (get-text-property (point) 'display) bar))
        (contexture-repl-toggle-markup)))))

(ert-deftest contexture-repl-tells-again-what-answers-took ()
  (contexture-repl-test-with '(("A1") ("A2"))
    (contexture-repl-test-send "Q1")
    (contexture-repl-test-send "Q2")
    (let ((before (contexture-repl-test-shown)))
      (should (string-search "A1\nscripted: 1200 tokens in" before))
      (kill-buffer)
      (contexture-repl-test-open "talk")
      (should (equal (contexture-repl-test-shown) before)))))

(ert-deftest contexture-repl-keeps-what-some-answers-took ()
  (contexture-repl-test-with nil
    (dotimes (number 60)
      (contexture-repl--keep-usage (format "msg-%d" number) "m" "much"))
    (should (= (length (plist-get contexture-repl--settings :usage))
               contexture-repl--kept-usages))))

(ert-deftest contexture-repl-shows-tools-where-they-are-used ()
  (contexture-repl-test-played
      `(((progress (:kind :text :text "Let me look."))
         (progress (:kind :tool-call :name "list-items" :arguments "{\"a\": 1}"))
         (progress (:kind :text :text " Done."))
         ,(contexture-repl-test-reply "Let me look. Done.")))
    (contexture-repl-test-send "Look")
    (should (string-match-p "Let me look\\.\n  calls list-items {\"a\": 1}\n Done\\.\n"
                            (contexture-repl-test-shown)))))

(ert-deftest contexture-repl-shows-reasoning-apart ()
  (contexture-repl-test-with
      '(((thought "Hm, so.") "Yes."))
    (contexture-repl-test-send "Is it?")
    (should (string-match-p "scripted\nHm, so\\.\nYes\\.\n" (contexture-repl-test-shown)))
    (contexture-repl-test-goto "Hm")
    (should (eq (get-text-property (point) 'face) 'contexture-repl-reasoning))
    (should (equal (contexture-repl--message-text (contexture-repl--last :assistant))
                   "Yes."))))

(ert-deftest contexture-repl-hides-reasoning-when-told ()
  (let ((contexture-repl-show-reasoning nil))
    (contexture-repl-test-with '(((thought "Hm.") "Yes."))
      (contexture-repl-test-send "Is it?")
      (should-not (string-search "Hm" (contexture-repl-test-shown))))))

(ert-deftest contexture-repl-believes-the-result-more-than-the-pieces ()
  (contexture-repl-test-played
      `(((progress (:kind :text :text "Half of"))
         ,(contexture-repl-test-reply "All of it.")))
    (contexture-repl-test-send "Say")
    (should (string-search "scripted\nAll of it.\n" (contexture-repl-test-shown)))
    (should-not (string-search "Half" (contexture-repl-test-shown)))))

(ert-deftest contexture-repl-shows-an-answer-that-was-not-streamed ()
  (contexture-repl-test-played (list (contexture-repl-test-reply "At once."))
    (contexture-repl-test-send "Say")
    (should (string-search "scripted\nAt once.\n" (contexture-repl-test-shown)))))

(ert-deftest contexture-repl-keeps-the-order-of-many-pieces ()
  (let ((pieces (mapcar (lambda (number) (format "%d\n" number)) (number-sequence 1 3000))))
    (contexture-repl-test-with (list pieces)
      (contexture-repl-test-send "Count")
      (should (string-search (apply #'concat pieces) (contexture-repl-test-shown))))))

(ert-deftest contexture-repl-draws-what-is-seen ()
  (let ((block "Look:\n```elisp\n(car x)\n```\n"))
    (contexture-repl-test-played (list (contexture-repl-test-reply block))
      (contexture-repl-test-send "**Say**")
      (contexture-repl--draw-log
       `((:id "msg-1" :role :user :content "**Say**")
         (:id "msg-2" :role :assistant :content ,block)))
      (let ((place (lambda (text)
                     (goto-char (point-min))
                     (search-forward text)
                     (match-beginning 0))))
        (should-not (get-text-property (funcall place "(car x)") 'contexture-block))
        (should (get-text-property (funcall place "(car x)") 'read-only))
        ;; As redisplay does before it shows a text.
        (run-hook-with-args 'fontification-functions (funcall place "Say**"))
        (should (eq (get-text-property (funcall place "Say**") 'face) 'bold))
        (should-not (get-text-property (funcall place "(car x)") 'contexture-block))
        ;; A command that needs it, from another buffer.
        (with-temp-buffer
          (contexture-insert-last-response t)
          (should (equal (buffer-string) "(car x)\n")))
        (should (get-text-property (funcall place "(car x)") 'contexture-block))
        (should-not (text-property-any (point-min) (point-max)
                                       'category 'contexture-repl-undrawn))))))

(ert-deftest contexture-repl-never-draws-much-at-a-time ()
  (let ((text (apply #'concat (make-list 4000 "**b** `c`\n```elisp\n(car x)\n```\n"))))
    (contexture-repl-test-played
        `(((progress (:kind :text :text ,text)) ,(contexture-repl-test-reply text))
          ,(contexture-repl-test-reply text))
      (dotimes (_ 2)
        (contexture-repl-test-type "Much?")
        (contexture-repl-send)
        (let ((longest 0))
          (while (contexture-repl--busy-p)
            (accept-process-output nil 0.001)
            (when contexture-repl--turn
              (let ((contexture-repl--draw-at-once 0) (before (buffer-size)))
                (contexture-repl--draw-pending contexture-repl--turn)
                (setq longest (max longest (- (buffer-size) before))))))
          (should (< 0 longest (* 2 contexture-repl--draw-characters)))))
      (contexture-repl-test-wait)
      (should (equal (mapcar #'contexture-repl--message-text
                             (cl-remove :user contexture-repl--messages
                                        :key #'contexture-repl--message-role))
                     (list text text))))))

(ert-deftest contexture-repl-sends-what-was-chosen ()
  (contexture-repl-test-played (mapcar #'contexture-repl-test-reply '("A" "B"))
    (contexture-repl-switch-model "large" "local")
    (contexture-repl-switch-template "goal-oriented")
    (contexture-repl-test-send "One")
    (let ((asked (car (last (contexture-ert-calls 'chat)))))
      (should (equal (list (plist-get asked :content) (plist-get asked :model)
                           (plist-get asked :provider) (plist-get asked :template)
                           (plist-get asked :manage))
                     '("One" "large" "local" "goal-oriented" t)))
      (should (plist-get asked :request-key)))
    (contexture-repl-switch-template "off")
    (contexture-repl-test-send "Two")
    (should (plist-member (car (last (contexture-ert-calls 'chat))) :manage))
    (should-not (plist-get (car (last (contexture-ert-calls 'chat))) :manage))
    (should-not (plist-member (car (last (contexture-ert-calls 'chat))) :template))))

(ert-deftest contexture-repl-uses-the-model-of-the-option ()
  (contexture-repl-test-played (mapcar #'contexture-repl-test-reply '("A" "B"))
    (let ((contexture-model "large"))
      (should (equal (contexture-repl--model) "large"))
      (contexture-repl-test-send "One")
      (should (equal (plist-get (car (last (contexture-ert-calls 'chat))) :model) "large"))
      (setq contexture-repl--providers '((:name "home" :model "small")))
      (setq contexture-model "home")
      (should (equal (contexture-repl--model-params) '(:provider "home")))
      (should (equal (contexture-repl--model) "small"))
      ;; What is chosen in a conversation is stronger.
      (contexture-repl-switch-model "own")
      (should (equal (contexture-repl--model-params) '(:model "own"))))))

(ert-deftest contexture-repl-tells-of-managing ()
  (contexture-repl-test-played
      (mapcar (lambda (management)
                (contexture-repl-test-reply "A" :management management))
              '((:status :managed :template "freeform-chat"
                         :tokens-before 9000 :tokens-after 700)
                (:status :failed :step "ask" :reason "no model" :template "x")
                (:status :below-threshold :template "freeform-chat" :tokens-before 30)
                (:status :disabled :template "freeform-chat")))
    (contexture-repl-test-send "One")
    (should (string-search "Notes with freeform-chat: 9000 → 700 tokens\n"
                           (contexture-repl-test-shown)))
    (dolist (text '("No notes were taken, so the whole history was sent: ask: no model (template x)"
                    "No notes with freeform-chat yet: the history, 30 tokens, is below"
                    "No notes: the template freeform-chat never takes notes"))
      (contexture-repl-test-send "Again")
      (should (string-search text (contexture-repl-test-shown))))))

(ert-deftest contexture-repl-tells-of-an-answer-that-was-cut-off ()
  (contexture-repl-test-played
      (list (contexture-repl-test-reply
             "A" :stop-reason :length :usage nil :cost nil
             :ending "cut off at the maximum length of an answer"))
    (contexture-repl-test-send "One")
    (should (string-search "scripted; cut off at the maximum length" (contexture-repl-test-shown)))))

(ert-deftest contexture-repl-tells-only-numbers-that-are-known ()
  (dolist (usage '(nil (:input nil :output nil) (:input 3 :output nil)))
    (should (equal (contexture-repl--result-text (list :model "m" :usage usage)) "m")))
  (should (equal (contexture-repl--result-text
                  '(:model "m" :usage (:input 3 :output 4 :cached nil) :cost 1))
                 "m: 3 tokens in, 4 out, cost 1.0000")))

(ert-deftest contexture-repl-sends-nothing-blank-and-nothing-meanwhile ()
  (contexture-repl-test-with '(("One" hang))
    (contexture-test-user-error "Write something at the prompt first" (contexture-repl-send))
    (contexture-repl-test-begin "Count" "One")
    (contexture-repl-test-type "And then?")
    (contexture-test-user-error "still being answered" (contexture-repl-send))
    (should (equal (contexture-repl--text) "And then?"))))

(ert-deftest contexture-repl-runs-a-hook-when-answered ()
  (contexture-repl-test-with '(("A"))
    (let* (answered (contexture-repl-answered-hook
                     (list (lambda () (setq answered (buffer-name))))))
      (contexture-repl-test-send "One")
      (should (equal answered "*contexture: talk*")))))

(ert-deftest contexture-repl-answers-two-sessions-at-once ()
  (contexture-repl-test-with '(("one" hang) ("two" hang))
    (contexture-repl-test-begin "First" "one")
    (let ((first (current-buffer)))
      (contexture-repl-test-open "other")
      (contexture-repl-test-begin "Second" "two")
      (should-not (string-search "one" (contexture-repl-test-shown)))
      (with-current-buffer first
        (should-not (string-search "two" (contexture-repl-test-shown)))))))

;;;; Coming back

(ert-deftest contexture-repl-asks-again-when-the-server-was-killed ()
  (contexture-repl-test-with '(("Half" hang) ("The " "whole"))
    (contexture-repl-test-begin "All?" "Half")
    (contexture-ert-kill-server t)
    (contexture-repl-test-wait)
    (should (string-search "was lost; the question was sent again" (contexture-repl-test-shown)))
    (should (string-search "scripted\nThe whole\n" (contexture-repl-test-shown)))
    (should-not (string-search "Half" (contexture-repl-test-shown)))
    (should (equal (contexture-repl-test-log) '((:user "All?") (:assistant "The whole"))))))

(ert-deftest contexture-repl-asks-again-until-the-server-stays ()
  (contexture-repl-test-with '(("Half" hang) ("Third" hang) ("Fourth" hang))
    (contexture-repl-test-begin "All?" "Half")
    (dolist (text '("Third" "Fourth"))
      (contexture-ert-kill-server t)
      (contexture-ert-wait-for (string-search text (contexture-repl-test-shown))))
    (contexture-repl-cancel)
    (contexture-repl-test-wait)
    (should (string-search "Fourth\nCancelled" (contexture-repl-test-shown)))
    (should-not (string-search "Half" (contexture-repl-test-shown)))))

(ert-deftest contexture-repl-cancelled-stays-so-when-the-server-is-killed ()
  (contexture-repl-test-with '(("Half" hang))
    (contexture-repl-test-begin "All?" "Half")
    (contexture-ert-with-stopped-server
      (contexture-repl-cancel)
      (contexture-ert-kill-server t))
    (contexture-repl-test-wait)
    (should (string-search "Cancelled" (contexture-repl-test-shown)))
    (should-not contexture-repl--turns)))

(ert-deftest contexture-repl-goes-on-after-the-server-was-killed ()
  (contexture-repl-test-with '(("A1") ("A2"))
    (contexture-request 'add-context (list :manager contexture-manager :content "one"))
    (contexture-repl-test-send "Q1")
    (contexture-ert-kill-server t)
    (contexture-repl-test-send "Q2")
    (should (equal (mapcar #'cadr (contexture-repl-test-log)) '("Q1" "A1" "Q2" "A2")))
    (should (= (length (contexture-test-items)) 1))))

(ert-deftest contexture-repl-session-comes-back-in-a-new-emacs ()
  (contexture-repl-test-with '(("# A1") ("A2"))
    (contexture-request 'add-context (list :manager contexture-manager :content "one"))
    (contexture-repl-switch-model "large")
    (contexture-repl-test-send "Q1")
    (contexture-repl-test-type "not sent")
    (kill-buffer)
    (setq contexture-repl--history nil contexture-repl--read nil)
    (contexture-repl-test-open "talk")
    (should (string-match-p "\\`You\nQ1\n\nlarge\n# A1\n" (contexture-repl-test-shown)))
    (contexture-ert-wait-for contexture-repl--items)
    (should (string-match-p "1 item, 1 token" (contexture-repl-test-context)))
    (should (equal (contexture-repl--text) "not sent"))
    (should (equal (plist-get contexture-repl--settings :model) "large"))
    (contexture-repl-previous-input 1)
    (should (equal (contexture-repl--text) "Q1"))))

(ert-deftest contexture-repl-killed-while-answered-keeps-the-question-once ()
  (dolist (case '(("One" "" "more")     ; the question stays with what came
                  (nil "Count" "Count\n\nmore")))
    (contexture-repl-test-with `((,@(ensure-list (car case)) hang))
      (contexture-repl-test-begin "Count" (or (car case) "Count"))
      (contexture-repl-test-type "more")
      (kill-buffer)
      (should-not contexture-repl--turns)
      (contexture-repl-test-open "talk")
      (should (equal (contexture-repl--text) (nth 2 case)))
      (when (car case)
        (contexture-ert-wait-for (string-search "One" (contexture-repl-test-shown)))
        (should (string-search "Count" (contexture-repl-test-shown)))))))

(defmacro contexture-repl-tests--reopened (how &rest body)
  "Run BODY as after a restart of Emacs, or only without the buffer, as HOW says."
  (declare (indent 1) (debug t))
  `(progn
     (contexture-repl-test-wait)
     (kill-buffer)
     (let ((contexture-repl--recent (and (eq ,how 'killed) contexture-repl--recent))
           (contexture-repl--used (and (eq ,how 'killed) contexture-repl--used)))
       ,@body)))

(ert-deftest contexture-repl-shows-the-conversation-in-which-it-asks ()
  (dolist (how '(killed restarted))
    (dolist (ask (list (lambda () (contexture-send-region "Third?"))
                       (lambda () (contexture-explain-code "Third?" "talk"))
                       (lambda () (contexture-rewrite "Third?" "talk"))))
      (contexture-repl-test-with '(("First.") ("Second.") ("Third."))
        (contexture-repl-test-send "First?")
        (contexture-repl-test-send "Second?")
        (contexture-repl-tests--reopened how
          (contexture-test-visiting (contexture-test-file "a.el" "(defun f (x)" "  (car x))")
            (goto-char (point-min))
            (save-current-buffer (funcall ask)))
          (with-current-buffer "*contexture: talk*"
            (contexture-ert-wait-for (string-search "Third." (contexture-repl-test-shown)))
            (contexture-repl-test-wait)
            (let ((at 0))
              (dolist (message (contexture-repl-test-log))
                (should (setq at (string-search (cadr message) (contexture-repl-test-shown)
                                                at)))))))))))

(ert-deftest contexture-repl-heads-answers-by-the-model-that-gave-them ()
  (contexture-repl-test-with '(("First."))
    (contexture-repl-test-send "First?")
    (contexture-request 'add-message '(:session "talk" :role :assistant :content "Other."))
    (contexture-repl-tests--reopened 'restarted
      (contexture-repl-test-open "talk")
      (contexture-repl-switch-model "another")
      (contexture-repl-redraw)
      (contexture-repl-test-wait)
      (should (string-search "scripted\nFirst." (contexture-repl-test-shown)))
      (should (string-search "Model\nOther." (contexture-repl-test-shown)))
      (should-not (string-search "another\n" (contexture-repl-test-shown))))))

(ert-deftest contexture-repl-opens-the-conversation-that-was-used-last ()
  (dolist (how '(killed restarted))
    (contexture-repl-test-with '(("A"))
      (contexture-repl-test-open "other")
      (contexture-repl-test-wait)
      (contexture-repl-test-open "talk")
      (contexture-request 'add-message '(:session "other" :content "by someone else"))
      (contexture-repl-tests--reopened how
        (with-temp-buffer
          (setq default-directory contexture-ert-directory)
          (contexture-repl)
          (should (equal "talk" (plist-get contexture-repl--session :session))))))))

(ert-deftest contexture-repl-sends-the-items-that-its-line-names ()
  (dolist (start '(contexture-repl contexture-session-new import))
    (contexture-repl-test-with nil
      (let* ((file (contexture-repl-test-project "one"))
             (root (file-name-directory file))
             (contexture-scope 'project)
             (session '(:name "new" :current nil)))
        (contexture-test-visiting file
          (contexture-test-message "^Added " (contexture-add-file file))
          (pcase start
            ('contexture-repl nil)
            ('contexture-session-new (contexture-test-message "items of project one"
                                       (contexture-session-new "new")))
            (_ (setq session (contexture-request 'open-session
                                                 (list :name "new" :project root)))
               (cl-letf* ((ask (symbol-function 'contexture--ask))
                          ((symbol-function 'contexture--ask)
                           (lambda (method params)
                             (let ((result (funcall ask method params)))
                               (if (eq method 'open-session)
                                   (append result '(:source "a.jsonl"))
                                 result)))))
                 (save-window-excursion (contexture-repl "new")))))
          (contexture-repl-test-open "new")
          (contexture-repl-test-wait)
          (should (string-match-p "\\`Context: project one  \\[a.el .*1 item"
                                  (contexture-repl-test-context)))
          (should (equal contexture-manager
                         (plist-get (contexture-request 'open-session '(:name "new"))
                                    :managers))))))))


(ert-deftest contexture-repl-leaves-nothing-behind ()
  (contexture-repl-test-with '(("One"))
    (contexture-repl-test-send "Count")
    (kill-buffer)
    (should-not (memq #'contexture-repl--changed contexture-notification-functions))
    (should-not (memq #'contexture-repl--progress contexture-notification-functions))
    (should-not contexture-connected-hook)
    (should-not (memq #'contexture-repl--keep-all kill-emacs-hook))
    (should-not (cl-some (lambda (timer)
                           (string-prefix-p "contexture-repl"
                                            (format "%s" (timer--function timer))))
                         (append timer-list timer-idle-list)))))

(ert-deftest contexture-repl-follows-what-is-done-elsewhere ()
  (contexture-repl-test-with '(("A1") ("Answered elsewhere"))
    (contexture-repl-test-send "Q1")
    (should (string-search "1200 tokens" (contexture-repl-test-shown)))
    (contexture-request 'add-message '(:session "talk" :content "Said elsewhere"))
    (contexture-ert-wait-for (string-search "Said elsewhere" (contexture-repl-test-shown)))
    (contexture-request 'chat '(:session "talk" :content "Asked elsewhere"))
    (contexture-ert-wait-for (string-search "Answered elsewhere" (contexture-repl-test-shown)))
    (contexture-request 'rollback '(:session "talk"))
    (contexture-ert-wait-for (null contexture-repl--messages))))

(ert-deftest contexture-repl-shows-the-last-of-a-long-session ()
  (let ((contexture-repl-shown-messages 4))
    (contexture-repl-test-with nil
      (contexture-request 'add-message
                          (list :session "talk"
                                :messages (cl-loop for number from 1 to 10 collect
                                                   (list :content (format "Q%d." number)))))
      (contexture-repl-redraw)
      (contexture-ert-wait-for contexture-repl--messages)
      (should (string-match-p "\\`Earlier messages are not shown; C-u C-c M-g shows them"
                              (contexture-repl-test-shown)))
      (should-not (string-search "Q6." (contexture-repl-test-shown)))
      (contexture-repl-redraw t)
      (contexture-ert-wait-for (string-search "Q1." (contexture-repl-test-shown))))))

;;;; What is around it

(ert-deftest contexture-repl-header-tells-session-model-template-tokens ()
  (contexture-repl-test-with '(("A"))
    (contexture-ert-wait-for contexture-repl--providers)
    (contexture-ert-wait-for
        (string-match-p
         "\\` talk  scripted  0 of 96,000 tokens (0 %%), no messages, 100,000 assumed\\'"
         (contexture-repl-test-header)))
    (contexture-repl-switch-model "50%er")
    (contexture-repl-switch-template "freeform-chat")
    (should (string-match-p "50%%er  notes: freeform-chat  .*" (contexture-repl-test-header)))))

(ert-deftest contexture-repl-mode-has-a-plain-name-and-its-count-beside-it ()
  (contexture-repl-test-with '(("A"))
    (contexture-ert-wait-for
        (equal " 0/96,000" (mapconcat (lambda (part) (eval (cadr part) t)) mode-line-process "")))
    (should (equal mode-name "Chat"))))

(ert-deftest contexture-repl-buffer-names-leave-room-in-the-mode-line ()
  (let ((name "How does this function compute the mean of n"))
    (contexture-repl-test-with '(("A"))
      (contexture-repl-test-open (plist-get (contexture-request 'open-session) :session))
      (contexture-repl-test-send name)
      (contexture-ert-wait-for (equal (plist-get contexture-repl--session :session) name))
      (should (equal (buffer-name) "*contexture: How does this funct…*"))
      (should (string-search "How does this function" (contexture-repl-test-header))))))

(ert-deftest contexture-repl-context-line-follows-the-context ()
  (contexture-repl-test-with nil
    (should (equal (contexture-repl-test-context)
                   "Context: empty; /add adds to it, @ to one question"))
    (contexture-request 'add-context
                        (list :manager contexture-manager :content "(car x)"
                              :metadata (list :filename "/x/a.el" :start-line 3 :end-line 3)))
    (contexture-ert-wait-for (string-match-p "\\`Context: \\[a\\.el:3[^]]* [0-9]+\\]  1 item"
                                             (contexture-repl-test-context)))))

(ert-deftest contexture-repl-context-line-fits-its-line ()
  (contexture-repl-test-with nil
    (setq contexture-repl--items
          (cl-loop for number below 40 collect
                   (list :id (format "ctx-%d" number) :tokens 100)))
    (contexture-repl--draw-context)
    (should (< (length (contexture-repl-test-context)) 80))
    (should (string-match-p "\\+3[0-9]  40 items, 4000 tokens"
                            (contexture-repl-test-context)))))

(ert-deftest contexture-repl-mentions-are-shown-and-counted-before-they-are-sent ()
  (contexture-repl-test-with '(("A1"))
    (contexture-test-file "notes.txt" "a note")
    (setq default-directory contexture-ert-directory)
    (contexture-repl-test-type "See @notes.txt")
    (let ((completion (contexture-mention--begin (- (point) 9))))
      (contexture-ert-wait-for (contexture-mention--file-p completion "notes.txt"))
      (contexture-mention--accepted completion "notes.txt" 'finished))
    (contexture-ert-wait-for (string-match-p "\\[@notes\\.txt[^]]* 3\\]  1 item, 3 tokens; @ goes"
                                             (contexture-repl-test-context)))
    (contexture-ert-wait-for (not (string-search "counting" (contexture-repl-test-header))))
    (let ((id (contexture-repl--session-id)))
      (contexture-repl-test-settled-count)
      (let ((counted (plist-get (contexture-count--of id) :tokens)))
        (contexture-repl-send)
        (contexture-repl-test-wait)
        (should (= counted (plist-get (car (contexture-request
                                            'explain-window (list :session id :limit 1)))
                                      :tokens-after)))))
    (should-not (contexture-test-items contexture-manager))
    (should (memq #'contexture-mention-at-point completion-at-point-functions))))

(ert-deftest contexture-repl-mentions-go-with-one-question ()
  (contexture-repl-test-with '(("A1") ("A2") ("A3") ("A4"))
    (contexture-test-file "sub/notes.txt" "a note")
    (setq default-directory (concat contexture-ert-directory "sub/"))
    (let ((shown (lambda () (string-search "a note" (contexture-repl-test-last-shown))))
          (kept (contexture-request 'list-managers)))
      (contexture-test-message "^With this question only: .*notes\\.txt (3 tokens); \
no file and no symbol known here matches @nix; it is only text"
        (contexture-repl-test-send "See @notes.txt, @notes.txt and @nix"))
      (should (funcall shown))
      (should (equal (plist-get (car (last (contexture-ert-calls 'chat))) :content)
                     "See @notes.txt, @notes.txt and @nix"))
      (contexture-repl-test-send "And the next?")
      (should-not (funcall shown))
      ;; Asked again, it goes along again; and what is a fence's is no mention.
      (contexture-repl-test-goto "See @notes.txt")
      (contexture-repl-edit)
      (contexture-repl-send)
      (contexture-repl-test-wait)
      (should (funcall shown))
      (contexture-repl-test-send "Why?\n\n```text\n@notes.txt\n```")
      (should-not (funcall shown))
      (contexture-repl-test-settled-count)
      (should (equal (contexture-request 'list-managers) kept)))))

(ert-deftest contexture-repl-added-file-stays-with-later-questions ()
  (contexture-repl-test-with '(("A1") ("A2"))
    (contexture-test-file "notes.txt" "a note")
    (setq default-directory contexture-ert-directory)
    (contexture-repl-test-send "See @notes.txt")
    (contexture-repl-test-type "/add notes.txt")
    (contexture-repl-send)
    (contexture-ert-wait-for (string-match-p "\\[notes\\.txt" (contexture-repl-test-context)))
    (contexture-repl-test-send "And @notes.txt now?")
    (should (string-search "a note" (contexture-repl-test-last-shown)))
    (should (contexture-test-only-item contexture-manager))))

(ert-deftest contexture-repl-draft-while-answering-keeps-its-own-mentions ()
  (contexture-repl-test-with '(("A1") ("A2"))
    (contexture-test-file "one.txt" "the first")
    (contexture-test-file "two.txt" "the second")
    (setq default-directory contexture-ert-directory)
    (contexture-repl-test-type "See @one.txt")
    (contexture-repl-send)
    (contexture-repl-test-type "See @two.txt")
    (contexture-repl--draft-mentions)
    (contexture-repl-test-wait)
    (let ((shown (contexture-repl-test-last-shown)))
      (should (string-search "the first" shown))
      (should-not (string-search "the second" shown)))
    (contexture-repl-send)
    (contexture-repl-test-wait)
    (let ((shown (contexture-repl-test-last-shown)))
      (should (string-search "the second" shown))
      (should-not (string-search "the first" shown)))))

(ert-deftest contexture-repl-question-is-sent-although-its-mention-cannot-be-read ()
  (contexture-repl-test-with '(("A1"))
    (contexture-test-file "picture.txt" "\0\0")
    (setq default-directory contexture-ert-directory)
    (contexture-test-message "picture\\.txt"
      (contexture-repl-test-send "See @picture.txt"))
    (should (string-search "A1" (contexture-repl-test-shown)))))

(ert-deftest contexture-repl-new-session-has-the-context-of-the-buffer ()
  (contexture-repl-test-with nil
    (contexture-test-visiting (contexture-test-file "a.txt" "one")
      (contexture-repl-test-open "of a")
      (should (equal contexture-manager "a.txt")))
    (let ((contexture-repl-own-context t))
      (contexture-test-visiting (contexture-test-file "b.txt" "one")
        (contexture-repl-test-open "of b")
        (should-not (equal contexture-manager "b.txt"))))))

(ert-deftest contexture-repl-goes-to-the-session-used-last ()
  (contexture-repl-test-with nil
    (with-temp-buffer
      (contexture-repl)
      (should (equal (buffer-name (window-buffer)) "*contexture: talk*")))
    (kill-buffer)
    (with-temp-buffer
      (setq default-directory contexture-ert-directory)
      (contexture-repl)
      (should (equal (buffer-name (window-buffer)) "*contexture: talk*")))))

(ert-deftest contexture-repl-moves-by-messages ()
  (contexture-repl-test-with '(("A1") ("A2"))
    (contexture-repl-test-send "Q1")
    (contexture-repl-test-send "Q2")
    (goto-char (point-max))
    (contexture-repl-previous-message 2)
    (should (looking-at-p "You\nQ2"))
    (contexture-repl-next-message 1)
    (should (looking-at-p "scripted\nA2"))
    (contexture-repl-next-message 1)
    (should (= (point) (point-max)))))

;;;; Models

(ert-deftest contexture-repl-says-at-once-that-no-model-is-set-up ()
  (contexture-repl-test-with nil
    (contexture-ert-wait-for (string-search "No model is set up yet: use M-x contexture-conf"
                                            (contexture-repl-test-shown)))
    (setq contexture-repl--providers '((:name "play" :model "scripted")))
    (contexture-repl--forget-no-model)
    (should-not (string-search "No model" (contexture-repl-test-shown)))))

(ert-deftest contexture-repl-asks-again-without-what-is-not-understood ()
  (contexture-repl-test-played
      `((error -32602 "no" (:param :model)) ,(contexture-repl-test-reply "A"))
    (contexture-repl-switch-model "large")
    (contexture-repl-test-send "Q")
    (should (string-search "does not know the parameter model" (contexture-repl-test-shown)))
    (should-not (plist-get (car (last (contexture-ert-calls 'chat))) :model))
    (should (equal (contexture-repl--text) ""))))

(ert-deftest contexture-repl-model-may-be-the-name-of-a-provider ()
  (contexture-repl-test-played (list (contexture-repl-test-reply "A"))
    (setq contexture-repl--providers '((:name "local" :model "llama")))
    (contexture-repl-switch-model "local")
    (should (equal (contexture-repl--model) "llama"))
    (contexture-repl-test-send "Q")
    (should (equal (plist-get (car (last (contexture-ert-calls 'chat))) :provider) "local"))))

(ert-deftest contexture-repl-leaves-imported-sessions-to-their-agents ()
  (cl-letf (((symbol-function 'contexture--ask)
             (lambda (&rest _) '((:session "a" :source "a.jsonl") (:session "b")))))
    (with-temp-buffer
      (should (equal (plist-get (contexture-repl--usual-session) :session) "b")))))

(ert-deftest contexture-repl-says-once-that-there-is-no-model ()
  (contexture-repl-test-with nil
    (contexture-repl-test-wait)
    (contexture-ert-wait-for (string-search "no model" (contexture-repl-test-header)))
    (should (= 1 (cl-count-if (lambda (part) (string-search "no model" part))
                              (cl-remove-if-not #'stringp header-line-format))))))

(ert-deftest contexture-repl-is-drawn-for-a-window-from-any-buffer ()
  (contexture-repl-test-with nil
    (let ((window (selected-window)))
      (should (eq (window-buffer window) (current-buffer)))
      (contexture-repl--changing
        (delete-region contexture-repl--tail (+ 3 contexture-repl--tail)))
      (with-temp-buffer (contexture-repl--resized window))
      (should (string-prefix-p "Context: " (contexture-repl-test-context))))))

(ert-deftest contexture-repl-shows-an-error-in-one-line ()
  (contexture-repl-test-with nil
    (contexture-repl--note-error (concat "first " (make-string 300 ?x) " last"))
    (contexture-repl-test-goto "Error: first")
    (should (string-suffix-p "..." (buffer-substring-no-properties (point) (line-end-position))))
    (should (< (- (line-end-position) (line-beginning-position)) (contexture-repl--width)))
    (should (eq 'contexture-repl-error (get-text-property (point) 'face)))
    (should (invisible-p (save-excursion (search-forward " last"))))
    (should (eq #'contexture-repl-toggle-details (key-binding (kbd "RET"))))
    (contexture-repl-toggle-details)
    (should-not (invisible-p (1- (save-excursion (search-forward " last")))))))

(ert-deftest contexture-repl-dry-run-needs-no-question ()
  (contexture-repl-test-with '(("A"))
    (contexture-request 'add-message '(:session "talk" :content "Said before"))
    (call-interactively #'contexture-repl-dry-run)
    (contexture-ert-wait-for (get-buffer contexture-repl-dry-run-buffer))
    (contexture-test-settle)
    (with-current-buffer contexture-repl-dry-run-buffer
      (should (string-search "Said before" (buffer-string)))
      (should (string-search "(your question)" (buffer-string)))
      (should (eq (window-buffer) (current-buffer)))
      (kill-buffer))))

(ert-deftest contexture-providers-take-effect-when-they-are-set ()
  (contexture-repl-test-with '(("A"))
    (setq contexture-providers
          (append contexture-providers
                  (list (list "second" :kind 'ollama :model "m2"
                              :base-url (contexture-ert-model-url)))))
    (contexture-ert-wait-for
        (cl-find "second" (contexture-request 'list-providers) :test #'equal
                 :key (lambda (it) (plist-get it :name))))))

(ert-deftest contexture-commands-select-the-buffer-that-they-show ()
  (let (found)
    (dolist (file (directory-files (file-name-directory (locate-library "contexture"))
                                   t "\\`contexture.*\\.el\\'"))
      (with-temp-buffer
        (insert-file-contents file)
        (while (re-search-forward "(display-buffer " nil t)
          (save-excursion
            (re-search-backward "^(def[a-z-]+ \\([^ ]+\\)")
            (push (match-string 1) found)))))
    ;; These show something beside a question, or after the user went elsewhere.
    (should (equal (sort (delete-dups found) #'string<)
                   '("contexture-list-item--edit" "contexture-repl-code--watch"
                     "contexture-session-import--preview" "contexture-setup-agent"
                     "contexture-tools--ask" "contexture-tools-change--point-out"
                     "contexture-trust--show")))))

(ert-deftest contexture-repl-sends-no-memory-that-is-not-at-the-prompt ()
  (dolist (start (list (lambda () (contexture-repl "new"))
                       (lambda () (contexture-test-message "Started" (contexture-session-new "new")))))
    (contexture-repl-test-with '(("A") ("B"))
      (contexture-request 'remember '(:content "the port is 8080" :scope :everywhere))
      (save-window-excursion (funcall start))
      (contexture-repl-test-open "new")
      (contexture-repl-test-send "which port?")
      (should-not (string-search "8080" (format "%S" (contexture-ert-shown))))
      (contexture-repl-test-send "/memories port")
      (contexture-ert-wait-for (string-search "8080" (contexture-repl--text)))
      (contexture-repl-test-send "which port?")
      (should (string-search "8080" (format "%S" (contexture-ert-shown)))))))

(ert-deftest contexture-repl-tells-what-others-did-in-one-line ()
  (contexture-repl-test-with '(("A"))
    (contexture-repl-test-send "Q")
    (pcase-dolist (`(,method ,said . ,params)
                   '((context-changed "^Another client undid a change of the items of "
                                      :method :undo)
                     (context-changed "^Another client removed items of " :method :remove-items)
                     (context-changed nil :method :remove-items :own t)
                     (session-changed "^Another client asked in conversation .*; the answer is shown"
                                      :method :chat :messages 9)
                     (session-changed "^Another client rolled conversation .* back"
                                      :method :rollback)
                     (session-changed "^Another client undid the last change of conversation "
                                      :method :undo-session)))
      (let (told)
        (cl-letf (((symbol-function 'contexture--message)
                   (lambda (&rest arguments) (push (apply #'format arguments) told))))
          (contexture-repl--changed
           method (append params (list :manager (plist-get contexture-repl--session :manager)
                                       :session-id (contexture-repl--session-id)))))
        (should (equal (length told) (if said 1 0)))
        (when said (should (string-match-p said (car told))))
        (contexture-repl-test-wait)))
    ;; What this Emacs does is told by its command.
    (let (told)
      (cl-letf (((symbol-function 'contexture--message)
                 (lambda (&rest arguments) (push (apply #'format arguments) told))))
        (contexture-session-undo)
        (contexture-ert-wait-for told)
        (contexture-repl-test-wait))
      (should-not (cl-find-if (lambda (it) (string-search "Another client" it)) told)))))

(ert-deftest contexture-repl-line-forgets-what-went-with-the-question ()
  (contexture-repl-test-with '(("A"))
    (contexture-test-file "notes.txt" "some notes")
    (setq default-directory contexture-ert-directory)
    (contexture-repl-test-type (format "What is in @%snotes.txt ?" contexture-ert-directory))
    (contexture-ert-wait-for
        (string-search "@ goes with this question only" (contexture-repl-test-context)))
    (contexture-repl-send)
    (should-not (string-search "notes.txt" (contexture-repl-test-context)))
    (should-not (string-search "this question only" (contexture-repl-test-context)))
    (contexture-repl-test-wait)
    (should-not (string-search "notes.txt" (contexture-repl-test-context)))))

(provide 'contexture-repl-tests)
;;; contexture-repl-tests.el ends here
