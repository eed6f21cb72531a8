;;; contexture-conversation-tests.el --- Tests of a conversation  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Asking, streaming, coming back after Emacs or the server went away,
;; what is around it.

;;; Code:

(require 'contexture-conversation-test-helper)

;;;; Asking

(ert-deftest contexture-conversation-shows-question-and-answer ()
  (contexture-conversation-test-with '(("Use " "`car`" ".\n"))
    (contexture-conversation-test-send "How do I take the first?")
    (should (equal (contexture-conversation-test-shown)
                   "You
How do I take the first?

scripted
Use `car`.
1200 tokens in, 34 out, cost $0.00094
"))
    (should (equal (contexture-conversation--text) ""))
    (should (equal (contexture-conversation-test-log)
                   '((:user "How do I take the first?") (:assistant "Use `car`.\n"))))))

(ert-deftest contexture-conversation-shows-pieces-as-they-come ()
  (contexture-conversation-test-with '(("One, " "two" hang))
    (contexture-conversation-test-begin "Count" "One, two")
    (should (contexture-conversation--busy-p))
    (should (equal (contexture-conversation--mode-line-state) ":answering"))))

(ert-deftest contexture-conversation-leaves-what-is-written-meanwhile ()
  (contexture-conversation-test-with '(("One, " "two" hang))
    (contexture-conversation-test-type "Count")
    (contexture-conversation-send)
    (insert "and th")
    (llm-ert-wait-for (string-search "One, two" (contexture-conversation-test-shown)))
    (insert "en?")
    (should (equal (contexture-conversation--text) "and then?"))
    (should (= (point) (point-max)))))

(ert-deftest contexture-conversation-shows-what-the-server-does-first ()
  (contexture-conversation-test-played
      `(((progress (:kind :status :text "summarized 12 turns"))
         (progress (:kind :retry :text "asked again in 2 s"))
         (progress (:kind :text :text "Well."))
         ,(contexture-conversation-test-reply "Well.")))
    (contexture-conversation-test-send "Go on")
    (should (string-match-p "Go on\nsummarized 12 turns\nasked again in 2 s\n\nscripted\nWell\\."
                            (contexture-conversation-test-shown)))))

(ert-deftest contexture-conversation-shows-a-wait-within-an-answer-at-once ()
  (contexture-conversation-test-played
      '(((progress (:kind :text :text "Let me look."))
         (progress (:kind :tool-call :name "list-items" :arguments "{}"))
         (progress (:kind :retry :text "asked again in 2 s")) hang))
    (contexture-conversation-test-begin "Go on" "asked again in 2 s")
    (should (contexture-conversation--busy-p))
    (should (string-match-p "calls list-items.*\nasked again in 2 s\n\\'"
                            (contexture-conversation-test-shown)))))

(ert-deftest contexture-conversation-answer-with-a-wait-is-not-drawn-twice ()
  (contexture-conversation-test-played
      `(((progress (:kind :text :text "One, "))
         (progress (:kind :retry :text "asked again in 2 s"))
         (progress (:kind :text :text "two."))
         ,(contexture-conversation-test-reply "One, two.")))
    (contexture-conversation-test-send "Count")
    (should (string-match-p "scripted\nOne, \nasked again in 2 s\ntwo\\.\n"
                            (contexture-conversation-test-shown)))))

(ert-deftest contexture-conversation-aligns-tables-with-and-without-markup ()
  (contexture-conversation-test-with '(("| a | b |\n|---|" "---|\n| **c** | d |\n"))
    (cl-letf (((symbol-function 'window-max-chars-per-line) (lambda (&rest _) 100)))
      (contexture-conversation-test-send "Compare")
      (contexture-conversation--draw-all)
      (dolist (bar '("|" "    |" "|"))
        (contexture-conversation-test-goto "| b |")
        (should (equal (get-text-property (point) 'display) bar))
        (contexture-conversation-toggle-markup)))))

(ert-deftest contexture-conversation-tells-again-what-answers-took ()
  (contexture-conversation-test-with '(("A1") ("A2"))
    (contexture-conversation-test-send "Q1")
    (contexture-conversation-test-send "Q2")
    (let ((before (contexture-conversation-test-shown)))
      (should (string-search "A1\n1200 tokens in" before))
      (kill-buffer)
      (contexture-conversation-test-open "talk")
      (should (equal (contexture-conversation-test-shown) before)))))

(ert-deftest contexture-conversation-keeps-what-some-answers-took ()
  (contexture-conversation-test-with nil
    (dotimes (number 60)
      (contexture-conversation--keep-usage (format "msg-%d" number) "m" "much"))
    (should (= (length (plist-get contexture-conversation--settings :usage))
               contexture-conversation--kept-usages))))

(ert-deftest contexture-conversation-shows-tools-where-they-are-used ()
  (contexture-conversation-test-played
      `(((progress (:kind :text :text "Let me look."))
         (progress (:kind :tool-call :name "list-items" :arguments "{\"a\": 1}"))
         (progress (:kind :text :text " Done."))
         ,(contexture-conversation-test-reply "Let me look. Done.")))
    (contexture-conversation-test-send "Look")
    (should (string-match-p "Let me look\\.\n  calls list-items {\"a\": 1}\n Done\\.\n"
                            (contexture-conversation-test-shown)))))

(ert-deftest contexture-conversation-shows-reasoning-apart ()
  (contexture-conversation-test-with
      '(((thought "Hm, so.") "Yes."))
    (contexture-conversation-test-send "Is it?")
    (should (string-match-p "scripted\nHm, so\\.\nYes\\.\n" (contexture-conversation-test-shown)))
    (contexture-conversation-test-goto "Hm")
    (should (eq (get-text-property (point) 'face) 'contexture-conversation-reasoning))
    (should (equal (contexture-conversation--message-text (contexture-conversation--last :assistant))
                   "Yes."))))

(ert-deftest contexture-conversation-hides-reasoning-when-told ()
  (let ((contexture-conversation-show-reasoning nil))
    (contexture-conversation-test-with '(((thought "Hm.") "Yes."))
      (contexture-conversation-test-send "Is it?")
      (should-not (string-search "Hm" (contexture-conversation-test-shown))))))

(ert-deftest contexture-conversation-believes-the-result-more-than-the-pieces ()
  (contexture-conversation-test-played
      `(((progress (:kind :text :text "Half of"))
         ,(contexture-conversation-test-reply "All of it.")))
    (contexture-conversation-test-send "Say")
    (should (string-search "scripted\nAll of it.\n" (contexture-conversation-test-shown)))
    (should-not (string-search "Half" (contexture-conversation-test-shown)))))

(ert-deftest contexture-conversation-shows-an-answer-that-was-not-streamed ()
  (contexture-conversation-test-played (list (contexture-conversation-test-reply "At once."))
    (contexture-conversation-test-send "Say")
    (should (string-search "scripted\nAt once.\n" (contexture-conversation-test-shown)))))

(ert-deftest contexture-conversation-keeps-the-order-of-many-pieces ()
  (let ((pieces (mapcar (lambda (number) (format "%d\n" number)) (number-sequence 1 3000))))
    (contexture-conversation-test-with (list pieces)
      (contexture-conversation-test-send "Count")
      (should (string-search (apply #'concat pieces) (contexture-conversation-test-shown))))))

(ert-deftest contexture-conversation-draws-what-is-seen ()
  (let ((block "Look:\n```elisp\n(car x)\n```\n"))
    (contexture-conversation-test-played (list (contexture-conversation-test-reply block))
      (contexture-conversation-test-send "**Say**")
      (contexture-conversation--draw-log
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
                                       'category 'contexture-conversation-undrawn))))))

(ert-deftest contexture-conversation-never-draws-much-at-a-time ()
  (let ((text (apply #'concat (make-list 4000 "**b** `c`\n```elisp\n(car x)\n```\n"))))
    (contexture-conversation-test-played
        `(((progress (:kind :text :text ,text)) ,(contexture-conversation-test-reply text))
          ,(contexture-conversation-test-reply text))
      (dotimes (_ 2)
        (contexture-conversation-test-type "Much?")
        (contexture-conversation-send)
        (let ((longest 0))
          (while (contexture-conversation--busy-p)
            (accept-process-output nil 0.001)
            (when contexture-conversation--turn
              (let ((contexture-conversation--draw-at-once 0) (before (buffer-size)))
                (contexture-conversation--draw-pending contexture-conversation--turn)
                (setq longest (max longest (- (buffer-size) before))))))
          (should (< 0 longest (* 2 contexture-conversation--draw-characters)))))
      (contexture-conversation-test-wait)
      (should (equal (mapcar #'contexture-conversation--message-text
                             (cl-remove :user contexture-conversation--messages
                                        :key #'contexture-conversation--message-role))
                     (list text text))))))

(ert-deftest contexture-conversation-sends-what-was-chosen ()
  (contexture-conversation-test-played (mapcar #'contexture-conversation-test-reply '("A" "B"))
    (contexture-conversation-switch-model "large" "local")
    (contexture-conversation-switch-notes "goal-oriented")
    (contexture-conversation-test-send "One")
    (let ((asked (car (last (llm-ert-calls 'chat)))))
      (should (equal (list (plist-get asked :content) (plist-get asked :model)
                           (plist-get asked :provider) (plist-get asked :template)
                           (plist-get asked :manage))
                     '("One" "large" "local" "goal-oriented" t)))
      (should (plist-get asked :request-key)))
    (contexture-conversation-switch-notes "off")
    (contexture-conversation-test-send "Two")
    (should (plist-member (car (last (llm-ert-calls 'chat))) :manage))
    (should-not (plist-get (car (last (llm-ert-calls 'chat))) :manage))
    (should-not (plist-member (car (last (llm-ert-calls 'chat))) :template))))

(ert-deftest contexture-conversation-uses-the-model-of-the-option ()
  (contexture-conversation-test-played (mapcar #'contexture-conversation-test-reply '("A" "B"))
    (let ((contexture-model "large"))
      (should (equal (contexture-conversation--model) "large"))
      (contexture-conversation-test-send "One")
      (should (equal (plist-get (car (last (llm-ert-calls 'chat))) :model) "large"))
      (setq contexture-conversation--providers '((:name "home" :model "small")))
      (setq contexture-model "home")
      (should (equal (contexture-conversation--model-params) '(:provider "home")))
      (should (equal (contexture-conversation--model) "small"))
      ;; What is chosen in a conversation is stronger.
      (contexture-conversation-switch-model "own")
      (should (equal (contexture-conversation--model-params) '(:model "own"))))))

(ert-deftest contexture-conversation-tells-of-managing ()
  (contexture-conversation-test-played
      (mapcar (lambda (management)
                (contexture-conversation-test-reply "A" :management management))
              '((:status :managed :template "freeform-chat"
                         :tokens-before 9000 :tokens-after 700)
                (:status :failed :step :prompt :reason "no model" :template "x")
                (:status :below-threshold :template "freeform-chat" :tokens-before 30)
                (:status :disabled :template "freeform-chat")))
    (contexture-conversation-test-send "One")
    (should (string-search "Notes with freeform-chat: 9000 → 700 tokens\n"
                           (contexture-conversation-test-shown)))
    (dolist (text '("No notes were taken, so the whole history was sent: prompt: no model (notes of the kind x)"
                    "No notes with freeform-chat yet: the history, 30 tokens, is below"
                    "No notes: the kind freeform-chat never takes notes"))
      (contexture-conversation-test-send "Again")
      (should (string-search text (contexture-conversation-test-shown))))))

(ert-deftest contexture-conversation-tells-of-an-answer-that-was-cut-off ()
  (contexture-conversation-test-played
      (list (contexture-conversation-test-reply
             "A" :stop-reason :length :usage nil :cost nil
             :ending "cut off at the maximum length of an answer"))
    (contexture-conversation-test-send "One")
    (should (string-search "A\ncut off at the maximum length" (contexture-conversation-test-shown)))))

(ert-deftest contexture-conversation-tells-only-numbers-that-are-known ()
  (dolist (usage '(nil (:input nil :output nil) (:input 3 :output nil)))
    (should-not (contexture-conversation--result-text (list :model "m" :usage usage))))
  (should (equal (contexture-conversation--result-text
                  '(:model "m" :usage (:input 3 :output 4 :cached nil) :cost 1))
                 "3 tokens in, 4 out, cost $1.0000")))

(ert-deftest contexture-conversation-sends-nothing-blank-and-nothing-meanwhile ()
  (contexture-conversation-test-with '(("One" hang))
    (contexture-test-user-error "Write something at the prompt first" (contexture-conversation-send))
    (contexture-conversation-test-begin "Count" "One")
    (contexture-conversation-test-type "And then?")
    (contexture-test-user-error "still being answered" (contexture-conversation-send))
    (should (equal (contexture-conversation--text) "And then?"))))

(ert-deftest contexture-conversation-runs-a-hook-when-answered ()
  (contexture-conversation-test-with '(("A"))
    (let* (answered (contexture-conversation-answered-hook
                     (list (lambda () (setq answered (buffer-name))))))
      (contexture-conversation-test-send "One")
      (should (equal answered "*contexture: talk*")))))

(ert-deftest contexture-conversation-answers-two-sessions-at-once ()
  (contexture-conversation-test-with '(("one" hang) ("two" hang))
    (contexture-conversation-test-begin "First" "one")
    (let ((first (current-buffer)))
      (contexture-conversation-test-open "other")
      (contexture-conversation-test-begin "Second" "two")
      (should-not (string-search "one" (contexture-conversation-test-shown)))
      (with-current-buffer first
        (should-not (string-search "two" (contexture-conversation-test-shown)))))))

;;;; Coming back

(ert-deftest contexture-conversation-asks-again-when-the-server-was-killed ()
  (contexture-conversation-test-with '(("Half" hang) ("The " "whole"))
    (contexture-conversation-test-begin "All?" "Half")
    (contexture-ert-kill-server t)
    (contexture-conversation-test-wait)
    (should (string-search "was lost; the question was sent again" (contexture-conversation-test-shown)))
    (should (string-search "scripted\nThe whole\n" (contexture-conversation-test-shown)))
    (should-not (string-search "Half" (contexture-conversation-test-shown)))
    (should (equal (contexture-conversation-test-log) '((:user "All?") (:assistant "The whole"))))))

(ert-deftest contexture-conversation-asks-again-until-the-server-stays ()
  (contexture-conversation-test-with '(("Half" hang) ("Third" hang) ("Fourth" hang))
    (contexture-conversation-test-begin "All?" "Half")
    (dolist (text '("Third" "Fourth"))
      (contexture-ert-kill-server t)
      (llm-ert-wait-for (string-search text (contexture-conversation-test-shown))))
    (contexture-conversation-cancel)
    (contexture-conversation-test-wait)
    (should (string-search "Fourth\nCancelled" (contexture-conversation-test-shown)))
    (should-not (string-search "Half" (contexture-conversation-test-shown)))))

(ert-deftest contexture-conversation-cancelled-stays-so-when-the-server-is-killed ()
  (contexture-conversation-test-with '(("Half" hang))
    (contexture-conversation-test-begin "All?" "Half")
    (contexture-ert-with-stopped-server
      (contexture-conversation-cancel)
      (contexture-ert-kill-server t))
    (contexture-conversation-test-wait)
    (should (string-search "Cancelled" (contexture-conversation-test-shown)))
    (should-not contexture-conversation--turns)))

(ert-deftest contexture-conversation-goes-on-after-the-server-was-killed ()
  (contexture-conversation-test-with '(("A1") ("A2"))
    (contexture-request 'add-context (list :manager contexture-context :content "one"))
    (contexture-conversation-test-send "Q1")
    (contexture-ert-kill-server t)
    (contexture-conversation-test-send "Q2")
    (should (equal (mapcar #'cadr (contexture-conversation-test-log)) '("Q1" "A1" "Q2" "A2")))
    (should (= (length (contexture-test-items)) 1))))

(ert-deftest contexture-conversation-session-comes-back-in-a-new-emacs ()
  (contexture-conversation-test-with '(("# A1") ("A2"))
    (contexture-request 'add-context (list :manager contexture-context :content "one"))
    (contexture-conversation-switch-model "large")
    (contexture-conversation-test-send "Q1")
    (contexture-conversation-test-type "not sent")
    (kill-buffer)
    (setq contexture-conversation--history nil contexture-conversation--read nil)
    (contexture-conversation-test-open "talk")
    (should (string-match-p "\\`You\nQ1\n\nlarge\n# A1\n" (contexture-conversation-test-shown)))
    (llm-ert-wait-for contexture-conversation--items)
    (should (string-match-p "1 item, 1 token" (contexture-conversation-test-context)))
    (should (equal (contexture-conversation--text) "not sent"))
    (should (equal (plist-get contexture-conversation--settings :model) "large"))
    (contexture-conversation-previous-input 1)
    (should (equal (contexture-conversation--text) "Q1"))))

(ert-deftest contexture-conversation-killed-while-answered-keeps-the-question-once ()
  (dolist (case '(("One" "" "more")     ; the question stays with what came
                  (nil "Count" "Count\n\nmore")))
    (contexture-conversation-test-with `((,@(ensure-list (car case)) hang))
      (contexture-conversation-test-begin "Count" (or (car case) "Count"))
      (contexture-conversation-test-type "more")
      (kill-buffer)
      (should-not contexture-conversation--turns)
      (contexture-conversation-test-open "talk")
      (should (equal (contexture-conversation--text) (nth 2 case)))
      (when (car case)
        (llm-ert-wait-for (string-search "One" (contexture-conversation-test-shown)))
        (should (string-search "Count" (contexture-conversation-test-shown)))))))

(defmacro contexture-conversation-tests--reopened (how &rest body)
  "Run BODY as after a restart of Emacs, or only without the buffer, as HOW says."
  (declare (indent 1) (debug t))
  `(progn
     (contexture-conversation-test-wait)
     (kill-buffer)
     (let ((contexture-conversation--recent (and (eq ,how 'killed) contexture-conversation--recent))
           (contexture-conversation--used (and (eq ,how 'killed) contexture-conversation--used)))
       ,@body)))

(ert-deftest contexture-conversation-shows-the-conversation-in-which-it-asks ()
  (dolist (how '(killed restarted))
    (dolist (ask (list (lambda () (contexture-send-region "Third?"))
                       (lambda () (contexture-explain-code "Third?" "talk"))
                       (lambda () (contexture-rewrite "Third?" "talk"))))
      (contexture-conversation-test-with '(("First.") ("Second.") ("Third."))
        (contexture-conversation-test-send "First?")
        (contexture-conversation-test-send "Second?")
        (contexture-conversation-tests--reopened how
          (contexture-test-visiting (contexture-test-file "a.el" "(defun f (x)" "  (car x))")
            (goto-char (point-min))
            (save-current-buffer (funcall ask)))
          (with-current-buffer "*contexture: talk*"
            (llm-ert-wait-for (string-search "Third." (contexture-conversation-test-shown)))
            (contexture-conversation-test-wait)
            (let ((at 0))
              (dolist (message (contexture-conversation-test-log))
                (should (setq at (string-search (cadr message) (contexture-conversation-test-shown)
                                                at)))))))))))

(ert-deftest contexture-conversation-heads-answers-by-the-model-that-gave-them ()
  (contexture-conversation-test-with '(("First."))
    (contexture-conversation-test-send "First?")
    (contexture-request 'add-message '(:session "talk" :role :assistant :content "Other."))
    (contexture-conversation-tests--reopened 'restarted
      (contexture-conversation-test-open "talk")
      (contexture-conversation-switch-model "another")
      (contexture-conversation-redraw)
      (contexture-conversation-test-wait)
      (should (string-search "scripted\nFirst." (contexture-conversation-test-shown)))
      (should (string-search "Model\nOther." (contexture-conversation-test-shown)))
      (should-not (string-search "another\n" (contexture-conversation-test-shown))))))

(ert-deftest contexture-conversation-opens-the-conversation-that-was-used-last ()
  (dolist (how '(killed restarted))
    (contexture-conversation-test-with '(("A"))
      (contexture-conversation-test-open "other")
      (contexture-conversation-test-wait)
      (contexture-conversation-test-open "talk")
      (contexture-request 'add-message '(:session "other" :content "by someone else"))
      (contexture-conversation-tests--reopened how
        (with-temp-buffer
          (setq default-directory llm-ert-directory)
          (contexture-conversation)
          (should (equal "talk" (plist-get contexture-conversation--session :session))))))))

(defun contexture-conversation-tests--told (root)
  "Make the conversation \"new\" of a file that names ROOT as its project."
  (contexture-request 'open-session (list :name "told" :project root))
  (contexture-request 'add-message '(:role :user :content "Which port?"))
  (let ((text (plist-get (contexture-request 'export-session '(:format :json)) :text)))
    (contexture-request 'delete-session '(:session "told"))
    (contexture-request 'open-session (list :name "new" :text text))))

(ert-deftest contexture-conversation-works-in-no-folder-that-only-a-file-names ()
  (contexture-conversation-test-with nil
    (let* ((file (contexture-conversation-test-project "one"))
           (contexture-add-to 'project)
           (asked nil))
      (contexture-test-visiting file
        (contexture-test-message "^Added " (contexture-add-file file))
        (contexture-conversation-tests--told (file-name-directory file))
        (cl-letf (((symbol-function 'y-or-n-p)
                   (lambda (prompt) (setq asked prompt) nil)))
          (save-window-excursion (contexture-conversation "new")))
        (should (string-match-p "\\`new was recorded in .*/one/" asked))
        (contexture-conversation-test-open "new")
        (contexture-conversation-test-wait)
        (should-not (plist-get contexture-conversation--session :project))
        (should-not (listp contexture-context))
        (let ((session (contexture-request 'open-session '(:name "new"))))
          (should (plist-get session :told))
          (should-not (plist-get session :managers)))))))

(ert-deftest contexture-conversation-sends-the-items-that-its-line-names ()
  (dolist (start '(contexture-conversation contexture-conversation-new import))
    (contexture-conversation-test-with nil
      (let* ((file (contexture-conversation-test-project "one"))
             (root (file-name-directory file))
             (contexture-add-to 'project)
             (session '(:name "new" :current nil)))
        (contexture-test-visiting file
          (contexture-test-message "^Added " (contexture-add-file file))
          (pcase start
            ('contexture-conversation nil)
            ('contexture-conversation-new (contexture-test-message "items of project one"
                                            (contexture-conversation-new "new")))
            (_ (setq session (contexture-conversation-tests--told root))
               (cl-letf (((symbol-function 'y-or-n-p) #'always))
                 (save-window-excursion (contexture-conversation "new")))))
          (contexture-conversation-test-open "new")
          (contexture-conversation-test-wait)
          (should (string-match-p "\\`Context: project one  \\[a.el .*1 item"
                                  (contexture-conversation-test-context)))
          (should (equal contexture-context
                         (plist-get (contexture-request 'open-session '(:name "new"))
                                    :managers))))))))


(ert-deftest contexture-conversation-leaves-nothing-behind ()
  (contexture-conversation-test-with '(("One"))
    (contexture-conversation-test-send "Count")
    (kill-buffer)
    (should-not (memq #'contexture-conversation--changed contexture-notification-functions))
    (should-not (memq #'contexture-conversation--progress contexture-notification-functions))
    (should-not contexture-connected-hook)
    (should-not (memq #'contexture-conversation--keep-all kill-emacs-hook))
    (should-not (cl-some (lambda (timer)
                           (string-prefix-p "contexture-conversation"
                                            (format "%s" (timer--function timer))))
                         (append timer-list timer-idle-list)))))

(ert-deftest contexture-conversation-follows-what-is-done-elsewhere ()
  (contexture-conversation-test-with '(("A1") ("Answered elsewhere"))
    (contexture-conversation-test-send "Q1")
    (should (string-search "1200 tokens" (contexture-conversation-test-shown)))
    (contexture-request 'add-message '(:session "talk" :content "Said elsewhere"))
    (llm-ert-wait-for (string-search "Said elsewhere" (contexture-conversation-test-shown)))
    (contexture-request 'chat '(:session "talk" :content "Asked elsewhere"))
    (llm-ert-wait-for (string-search "Answered elsewhere" (contexture-conversation-test-shown)))
    (contexture-request 'rollback '(:session "talk"))
    (llm-ert-wait-for (null contexture-conversation--messages))))

(ert-deftest contexture-conversation-shows-the-last-of-a-long-session ()
  (let ((contexture-conversation-shown-messages 4))
    (contexture-conversation-test-with nil
      (contexture-request 'add-message
                          (list :session "talk"
                                :messages (cl-loop for number from 1 to 10 collect
                                                   (list :content (format "Q%d." number)))))
      (contexture-conversation-redraw)
      (llm-ert-wait-for contexture-conversation--messages)
      (should (string-match-p "\\`Earlier messages are not shown; C-u C-c M-g shows them"
                              (contexture-conversation-test-shown)))
      (should-not (string-search "Q6." (contexture-conversation-test-shown)))
      (contexture-conversation-redraw t)
      (llm-ert-wait-for (string-search "Q1." (contexture-conversation-test-shown))))))

;;;; What is around it

(ert-deftest contexture-conversation-header-tells-model-notes-tokens-and-name ()
  (contexture-conversation-test-with '(("A"))
    (llm-ert-wait-for contexture-conversation--providers)
    (llm-ert-wait-for
        (string-match-p
         "\\` scripted  0 of 96,000 tokens (0 %%), no messages, limit assumed  talk\\'"
         (contexture-conversation-test-header)))
    (contexture-conversation-switch-model "50%er")
    (contexture-conversation-switch-notes "freeform-chat")
    (should (string-match-p "50%%er  notes: freeform-chat  .*" (contexture-conversation-test-header)))))

(ert-deftest contexture-conversation-mode-has-a-plain-name-and-its-count-beside-it ()
  (contexture-conversation-test-with '(("A"))
    (llm-ert-wait-for
        (equal " 0/96,000" (mapconcat (lambda (part) (eval (cadr part) t)) mode-line-process "")))
    (should (equal mode-name "Conversation"))))

(ert-deftest contexture-conversation-buffer-names-leave-room-in-the-mode-line ()
  (let ((name "How does this function compute the mean of n"))
    (contexture-conversation-test-with '(("A"))
      (contexture-conversation-test-open (plist-get (contexture-request 'open-session) :session))
      (contexture-conversation-test-send name)
      (llm-ert-wait-for (equal (plist-get contexture-conversation--session :session) name))
      (should (equal (buffer-name) "*contexture: How does this funct…*"))
      (should (string-search "How does this function" (contexture-conversation-test-header))))))

(ert-deftest contexture-conversation-context-line-follows-the-context ()
  (contexture-conversation-test-with nil
    (should (equal (contexture-conversation-test-context)
                   "Context: empty; /add adds to it, @ to one question"))
    (contexture-request 'add-context
                        (list :manager contexture-context :content "(car x)"
                              :metadata (list :filename "/x/a.el" :start-line 3 :end-line 3)))
    (llm-ert-wait-for (string-match-p "\\`Context: \\[a\\.el:3[^]]* [0-9]+\\]  1 item"
                                             (contexture-conversation-test-context)))))

(ert-deftest contexture-conversation-context-line-fits-its-line ()
  (contexture-conversation-test-with nil
    (setq contexture-conversation--items
          (cl-loop for number below 40 collect
                   (list :id (format "ctx-%d" number) :tokens 100)))
    (contexture-conversation--draw-context)
    (should (< (length (contexture-conversation-test-context)) 80))
    (should (string-match-p "\\+3[0-9]  40 items, 4000 tokens"
                            (contexture-conversation-test-context)))))

(ert-deftest contexture-conversation-mentions-are-shown-and-counted-before-they-are-sent ()
  (contexture-conversation-test-with '(("A1"))
    (contexture-test-file "notes.txt" "a note")
    (setq default-directory llm-ert-directory)
    (contexture-conversation-test-type "See @notes.txt")
    (let ((completion (contexture-mention--begin (- (point) 9))))
      (llm-ert-wait-for (contexture-mention--file-p completion "notes.txt"))
      (contexture-mention--accepted completion "notes.txt" 'finished))
    (llm-ert-wait-for (string-match-p "\\[@notes\\.txt[^]]* 3\\]  1 item, 3 tokens; @ goes"
                                             (contexture-conversation-test-context)))
    (llm-ert-wait-for (not (string-search "counting" (contexture-conversation-test-header))))
    (let ((id (contexture-conversation--session-id)))
      (contexture-conversation-test-settled-count)
      (let ((counted (plist-get (contexture-count--of id) :tokens)))
        (contexture-conversation-send)
        (contexture-conversation-test-wait)
        (should (= counted (plist-get (car (plist-get (contexture-request
                                                       'session-report (list :session id :reports 1))
                                                      :reports))
                                      :tokens-after)))))
    (should-not (contexture-test-items contexture-context))
    (should (memq #'contexture-mention-at-point completion-at-point-functions))))

(ert-deftest contexture-conversation-mentions-go-with-one-question ()
  (contexture-conversation-test-with '(("A1") ("A2") ("A3") ("A4"))
    (contexture-test-file "sub/notes.txt" "a note")
    (setq default-directory (concat llm-ert-directory "sub/"))
    (let ((shown (lambda () (string-search "a note" (contexture-conversation-test-last-shown))))
          (kept (contexture-request 'list-managers)))
      (contexture-test-message "^With this question only: .*notes\\.txt (3 tokens); \
no file and no symbol known here matches @nix; it is only text"
        (contexture-conversation-test-send "See @notes.txt, @notes.txt and @nix"))
      (should (funcall shown))
      (should (equal (plist-get (car (last (llm-ert-calls 'chat))) :content)
                     "See @notes.txt, @notes.txt and @nix"))
      (contexture-conversation-test-send "And the next?")
      (should-not (funcall shown))
      ;; Asked again, it goes along again; and what is a fence's is no mention.
      (contexture-conversation-test-goto "See @notes.txt")
      (contexture-conversation-edit)
      (contexture-conversation-send)
      (contexture-conversation-test-wait)
      (should (funcall shown))
      (contexture-conversation-test-send "Why?\n\n```text\n@notes.txt\n```")
      (should-not (funcall shown))
      (contexture-conversation-test-settled-count)
      (should (equal (contexture-request 'list-managers) kept)))))

(ert-deftest contexture-conversation-added-file-stays-with-later-questions ()
  (contexture-conversation-test-with '(("A1") ("A2"))
    (contexture-test-file "notes.txt" "a note")
    (setq default-directory llm-ert-directory)
    (contexture-conversation-test-send "See @notes.txt")
    (contexture-conversation-test-type "/add notes.txt")
    (contexture-conversation-send)
    (llm-ert-wait-for (string-match-p "\\[notes\\.txt" (contexture-conversation-test-context)))
    (contexture-conversation-test-send "And @notes.txt now?")
    (should (string-search "a note" (contexture-conversation-test-last-shown)))
    (should (contexture-test-only-item contexture-context))))

(ert-deftest contexture-conversation-draft-while-answering-keeps-its-own-mentions ()
  (contexture-conversation-test-with '(("A1") ("A2"))
    (contexture-test-file "one.txt" "the first")
    (contexture-test-file "two.txt" "the second")
    (setq default-directory llm-ert-directory)
    (contexture-conversation-test-type "See @one.txt")
    (contexture-conversation-send)
    (contexture-conversation-test-type "See @two.txt")
    (contexture-conversation--draft-mentions)
    (contexture-conversation-test-wait)
    (let ((shown (contexture-conversation-test-last-shown)))
      (should (string-search "the first" shown))
      (should-not (string-search "the second" shown)))
    (contexture-conversation-send)
    (contexture-conversation-test-wait)
    (let ((shown (contexture-conversation-test-last-shown)))
      (should (string-search "the second" shown))
      (should-not (string-search "the first" shown)))))

(ert-deftest contexture-conversation-question-is-sent-although-its-mention-cannot-be-read ()
  (contexture-conversation-test-with '(("A1"))
    (contexture-test-file "picture.txt" "\0\0")
    (setq default-directory llm-ert-directory)
    (contexture-test-message "picture\\.txt"
      (contexture-conversation-test-send "See @picture.txt"))
    (should (string-search "A1" (contexture-conversation-test-shown)))))

(ert-deftest contexture-conversation-new-session-has-the-context-of-the-buffer ()
  (contexture-conversation-test-with nil
    (contexture-test-visiting (contexture-test-file "a.txt" "one")
      (contexture-conversation-test-open "of a")
      (should (equal contexture-context "a.txt")))
    (let ((contexture-conversation-own-context t))
      (contexture-test-visiting (contexture-test-file "b.txt" "one")
        (contexture-conversation-test-open "of b")
        ;; Neither the items of the file nor those of the project.
        (should (equal contexture-context
                       (plist-get contexture-conversation--session :manager)))))))

(ert-deftest contexture-conversation-goes-to-the-session-used-last ()
  (contexture-conversation-test-with nil
    (with-temp-buffer
      (contexture-conversation)
      (should (equal (buffer-name (window-buffer)) "*contexture: talk*")))
    (kill-buffer)
    (with-temp-buffer
      (setq default-directory llm-ert-directory)
      (contexture-conversation)
      (should (equal (buffer-name (window-buffer)) "*contexture: talk*")))))

(ert-deftest contexture-conversation-moves-by-messages ()
  (contexture-conversation-test-with '(("A1") ("A2"))
    (contexture-conversation-test-send "Q1")
    (contexture-conversation-test-send "Q2")
    (goto-char (point-max))
    (contexture-conversation-previous-message 2)
    (should (looking-at-p "You\nQ2"))
    (contexture-conversation-next-message 1)
    (should (looking-at-p "scripted\nA2"))
    (contexture-conversation-next-message 1)
    (should (= (point) (point-max)))))

;;;; Models

(ert-deftest contexture-conversation-says-at-once-that-no-model-is-set-up ()
  (contexture-conversation-test-with nil
    (llm-ert-wait-for (string-search "No model is set up yet: use M-x contexture-conf"
                                            (contexture-conversation-test-shown)))
    (setq contexture-conversation--providers '((:name "play" :model "scripted")))
    (contexture-conversation--forget-no-model)
    (should-not (string-search "No model" (contexture-conversation-test-shown)))))

(ert-deftest contexture-conversation-asks-again-without-what-is-not-understood ()
  (contexture-conversation-test-played
      `((error -32602 "no" (:param :model)) ,(contexture-conversation-test-reply "A"))
    (contexture-conversation-switch-model "large")
    (contexture-conversation-test-send "Q")
    (should (string-search "does not know the parameter model" (contexture-conversation-test-shown)))
    (should-not (plist-get (car (last (llm-ert-calls 'chat))) :model))
    (should (equal (contexture-conversation--text) ""))))

(ert-deftest contexture-conversation-model-may-be-the-name-of-a-provider ()
  (contexture-conversation-test-played (list (contexture-conversation-test-reply "A"))
    (setq contexture-conversation--providers '((:name "local" :model "llama")))
    (contexture-conversation-switch-model "local")
    (should (equal (contexture-conversation--model) "llama"))
    (contexture-conversation-test-send "Q")
    (should (equal (plist-get (car (last (llm-ert-calls 'chat))) :provider) "local"))))

(ert-deftest contexture-conversation-leaves-imported-sessions-to-their-agents ()
  (cl-letf (((symbol-function 'contexture--ask)
             (lambda (&rest _) '((:session "a" :source "a.jsonl") (:session "b")))))
    (with-temp-buffer
      (should (equal (plist-get (contexture-conversation--usual-session) :session) "b")))))

(ert-deftest contexture-conversation-says-once-that-there-is-no-model ()
  (contexture-conversation-test-with nil
    (contexture-conversation-test-wait)
    (llm-ert-wait-for (string-search "no model" (contexture-conversation-test-header)))
    (should (= 1 (cl-count-if (lambda (part) (string-search "no model" part))
                              (cl-remove-if-not #'stringp header-line-format))))))

(ert-deftest contexture-conversation-is-drawn-for-a-window-from-any-buffer ()
  (contexture-conversation-test-with nil
    (let ((window (selected-window)))
      (should (eq (window-buffer window) (current-buffer)))
      (contexture-conversation--changing
        (delete-region contexture-conversation--tail (+ 3 contexture-conversation--tail)))
      (with-temp-buffer (contexture-conversation--resized window))
      (should (string-prefix-p "Context: " (contexture-conversation-test-context))))))

(ert-deftest contexture-conversation-shows-an-error-in-one-line ()
  (contexture-conversation-test-with nil
    (contexture-conversation--note-error (concat "first " (make-string 300 ?x) " last"))
    (contexture-conversation-test-goto "Error: first")
    (should (string-suffix-p "..." (buffer-substring-no-properties (point) (line-end-position))))
    (should (< (- (line-end-position) (line-beginning-position)) (contexture-conversation--width)))
    (should (eq 'contexture-conversation-error (get-text-property (point) 'face)))
    (should (invisible-p (save-excursion (search-forward " last"))))
    (should (eq #'contexture-conversation-toggle-details (key-binding (kbd "RET"))))
    (contexture-conversation-toggle-details)
    (should-not (invisible-p (1- (save-excursion (search-forward " last")))))))

(ert-deftest contexture-conversation-preview-needs-no-question ()
  (contexture-conversation-test-with '(("A"))
    (contexture-request 'add-message '(:session "talk" :content "Said before"))
    (call-interactively #'contexture-conversation-preview)
    (llm-ert-wait-for (get-buffer contexture-conversation-preview-buffer))
    (contexture-test-settle)
    (with-current-buffer contexture-conversation-preview-buffer
      (should (string-search "Said before" (buffer-string)))
      (should (string-search "(your question)" (buffer-string)))
      (should (eq (window-buffer) (current-buffer)))
      (kill-buffer))))

(ert-deftest contexture-providers-take-effect-when-they-are-set ()
  (contexture-conversation-test-with '(("A"))
    (setq contexture-providers
          (append contexture-providers
                  (list (list "second" :kind 'ollama :model "m2"
                              :base-url (llm-ert-url)))))
    (llm-ert-wait-for
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
                   '("contexture-conversation-code--watch" "contexture-gptel--show" "contexture-import--previewed"
                     "contexture-list-item--edit" "contexture-setup-agent"
                     "contexture-tools--ask" "contexture-tools-change--point-out"
                     "contexture-trust--show")))))

(ert-deftest contexture-conversation-sends-no-memory-that-is-not-at-the-prompt ()
  (dolist (start (list (lambda () (contexture-conversation "new"))
                       (lambda () (contexture-test-message "Started" (contexture-conversation-new "new")))))
    (contexture-conversation-test-with '(("A") ("B"))
      (contexture-request 'remember '(:content "the port is 8080" :scope :everywhere))
      (save-window-excursion (funcall start))
      (contexture-conversation-test-open "new")
      (contexture-conversation-test-send "which port?")
      (should-not (string-search "8080" (format "%S" (llm-ert-shown))))
      (contexture-conversation-test-send "/memories port")
      (llm-ert-wait-for (string-search "8080" (contexture-conversation--text)))
      (contexture-conversation-test-send "which port?")
      (should (string-search "8080" (format "%S" (llm-ert-shown)))))))

(ert-deftest contexture-conversation-tells-what-others-did-in-one-line ()
  (contexture-conversation-test-with '(("A"))
    (contexture-conversation-test-send "Q")
    (pcase-dolist (`(,method ,said . ,params)
                   '((context-changed "^Another client undid a change of the items of "
                                      :method :undo)
                     (context-changed "^Another client removed some of the items of " :method :remove-items)
                     (context-changed nil :method :remove-items :own t)
                     (session-changed "^Another client asked in conversation .*; the answer is shown"
                                      :method :chat :messages 9)
                     (session-changed "^Another client went back to an earlier turn of conversation "
                                      :method :rollback)
                     (session-changed "^Another client undid a change of conversation "
                                      :method :undo)))
      (let (told)
        (cl-letf (((symbol-function 'contexture--message)
                   (lambda (&rest arguments) (push (apply #'format arguments) told))))
          (contexture-conversation--changed
           method (append params (list :manager (plist-get contexture-conversation--session :manager)
                                       :session-id (contexture-conversation--session-id)))))
        (should (equal (length told) (if said 1 0)))
        (when said (should (string-match-p said (car told))))
        (contexture-conversation-test-wait)))
    ;; What this Emacs does is told by its command.
    (let (told)
      (cl-letf (((symbol-function 'contexture--message)
                 (lambda (&rest arguments) (push (apply #'format arguments) told))))
        (contexture-conversation-undo)
        (llm-ert-wait-for told)
        (contexture-conversation-test-wait))
      (should-not (cl-find-if (lambda (it) (string-search "Another client" it)) told)))))

(ert-deftest contexture-conversation-line-forgets-what-went-with-the-question ()
  (contexture-conversation-test-with '(("A"))
    (contexture-test-file "notes.txt" "some notes")
    (setq default-directory llm-ert-directory)
    (contexture-conversation-test-type (format "What is in @%snotes.txt ?" llm-ert-directory))
    (llm-ert-wait-for
        (string-search "@ goes with this question only" (contexture-conversation-test-context)))
    (contexture-conversation-send)
    ;; The question goes once its file was read.
    (llm-ert-wait-for
        (not (string-search "notes.txt" (contexture-conversation-test-context))))
    (should-not (string-search "this question only" (contexture-conversation-test-context)))
    (contexture-conversation-test-wait)
    (should-not (string-search "notes.txt" (contexture-conversation-test-context)))))

(ert-deftest contexture-conversation-asks-for-items-that-change-all-the-time-now-and-then ()
  (contexture-conversation-test-with nil
    (let ((contexture-conversation--items-pause 0.3) (asked 0) answer
          (change (list :manager (car (ensure-list (contexture-conversation--managers)))
                        :method :add-item :own t)))
      (contexture-test-settle)
      (llm-ert-wait-for (null contexture-conversation--items-timer))
      (cl-letf (((symbol-function 'contexture-conversation--request)
                 (lambda (_ _ success &optional _) (cl-incf asked) (setq answer success))))
        (cl-flet ((changes (seconds)
                    (let ((end (+ (float-time) seconds)))
                      (while (< (float-time) end)
                        (contexture-conversation--changed 'context-changed change)
                        (accept-process-output nil 0.01)))))
          ;; Without an answer, there is one call.
          (changes 0.5)
          (should (= asked 1))
          ;; After one, the next call comes when the pause is over.
          (funcall answer nil)
          (changes 0.2)
          (should (= asked 1))
          (llm-ert-wait-for (= asked 2))
          ;; When nothing changes any more, nothing is asked, and the next change is seen soon.
          (setq contexture-conversation--items-again nil)
          (funcall answer nil)
          (llm-ert-wait-for (null contexture-conversation--items-timer))
          (should (= asked 2))
          (contexture-conversation--changed 'context-changed change)
          (llm-ert-wait-for (= asked 3)))))))

(provide 'contexture-conversation-tests)
;;; contexture-conversation-tests.el ends here
