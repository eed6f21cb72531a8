;;; contexture-conversation-turn-tests.el --- Tests of turns that go otherwise  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Failing, cancelling, asking again, changing a question, branching.

;;; Code:

(require 'contexture-conversation-test-helper)

;;;; Failing

(ert-deftest contexture-conversation-without-a-provider-says-what-to-do ()
  (contexture-conversation-test-with nil
    (dolist (text '("Anybody?" ""))
      (contexture-conversation-test-send text)
      (should (equal (contexture-conversation--text) "Anybody?"))
      (should (equal (string-trim (contexture-conversation-test-shown))
                     (concat contexture-conversation--no-model
                             " Then, RET asks the question at the prompt again."))))
    (contexture-conversation--forget-no-model)
    (should (equal (string-trim (contexture-conversation-test-shown)) ""))
    (should-not contexture-conversation--messages)
    (should-not contexture-conversation--turns)))

(ert-deftest contexture-conversation-says-so-when-the-server-has-no-chat ()
  (contexture-test-with-state
    (let ((contexture-conversation-history-file nil) (contexture-conversation--recent nil))
      (save-window-excursion
        (contexture-conversation-test-open "talk")
        (contexture-conversation-test-send "Anybody?")
        (unless (string-search "No model is set up" (contexture-conversation-test-shown))
          (should (string-search "cannot talk to models" (contexture-conversation-test-shown))))
        (should (equal (contexture-conversation--text) "Anybody?"))))))

(ert-deftest contexture-conversation-says-what-to-do-after-each-error ()
  (pcase-dolist (`(,kind ,advice)
                 '((:authentication "needs a valid key")
                   (:unconfigured "needs a valid key")
                   (:rate-limited "Wait a little")
                   (:quota-exhausted "plan of your account")
                   (:context-too-long "/drop items")
                   (:bad-request "/model chooses")
                   (:unavailable "RET asks the question at the prompt")
                   (:malformed "RET asks the question at the prompt")))
    (should (string-match-p advice (contexture-conversation--advice kind 1)))))

(ert-deftest contexture-conversation-shows-costs-with-the-digits-that-matter ()
  (pcase-dolist (`(,cost ,text) '((0.0 "0.0000") (1.23456789 "1.2346") (0.0012 "0.0012")
                                  (0.00012345 "0.00012") (0.0000009999 "0.000001")
                                  (1.5e-20 "0")))
    (should (equal (contexture-conversation--cost-text cost) text))))

(ert-deftest contexture-conversation-puts-what-failed-before-what-was-written-since ()
  (contexture-conversation-test-played '((error 1 "busy" (:kind :rate-limited)))
    (contexture-conversation-test-type "First")
    (contexture-conversation-send)
    (contexture-conversation-test-type "Second")
    (contexture-conversation-test-wait)
    (should (equal (contexture-conversation--text) "First\n\nSecond"))))

(ert-deftest contexture-conversation-keeps-an-answer-that-broke-off ()
  (contexture-conversation-test-with '(("Half of" (error bad-request "it went away")))
    (contexture-conversation-test-send "All?")
    (should (string-match-p "Half of\n\\+ Error: .*\n.*it went away.*\n" (contexture-conversation-test-shown)))
    (should (equal (contexture-conversation--text) "All?"))))

(ert-deftest contexture-conversation-has-the-server-forget-what-was-not-answered ()
  (contexture-conversation-test-with '(((error bad-request "no")) ("Yes"))
    (contexture-conversation-test-send "All?")
    (llm-ert-wait-for (null (contexture-conversation-test-log)))
    (contexture-conversation-send)
    (contexture-conversation-test-wait)
    (should (equal (contexture-conversation-test-log) '((:user "All?") (:assistant "Yes"))))))

(ert-deftest contexture-conversation-gives-back-what-no-server-can-take ()
  (contexture-conversation-test-with nil
    (contexture-disconnect)
    (let ((contexture-server-command "no-such-program-anywhere"))
      (contexture-conversation-test-type "Anybody?")
      (contexture-conversation-send)
      (should (equal (contexture-conversation--text) "Anybody?"))
      (should (string-search "There is no program" (contexture-conversation-test-shown))))))

;;;; Cancelling

(ert-deftest contexture-conversation-cancel-keeps-what-has-come ()
  (contexture-conversation-test-with '(("One, two" hang))
    (contexture-conversation-test-begin "Count" "One, two")
    (contexture-conversation-cancel)
    (contexture-conversation-test-wait)
    (should (string-match-p "One, two\nCancelled; C-c C-r asks again\\.\n"
                            (contexture-conversation-test-shown)))
    (should (equal (contexture-conversation--text) ""))
    (should (equal (contexture-conversation-test-log) '((:user "Count") (:assistant "One, two"))))))

(ert-deftest contexture-conversation-cancel-gives-back-what-has-no-answer ()
  (contexture-conversation-test-with '((hang))
    (contexture-conversation-test-type "Count")
    (contexture-conversation-send)
    (llm-ert-wait-for (llm-ert-shown))
    (contexture-conversation-cancel)
    (contexture-conversation-test-wait)
    (should (equal (contexture-conversation--text) "Count"))
    (should (string-search "your question is back at the prompt"
                           (contexture-conversation-test-shown)))
    (llm-ert-wait-for (null (contexture-conversation-test-log)))))

(ert-deftest contexture-conversation-cancel-at-once-asks-nobody ()
  (contexture-conversation-test-with '(("One"))
    (contexture-conversation-test-type "Count")
    (contexture-conversation-send)
    (contexture-conversation-cancel)
    (contexture-conversation-test-wait)
    (llm-ert-should-not-called 'chat)
    (should (equal (contexture-conversation--text) "Count"))))

(ert-deftest contexture-conversation-cancel-twice-forgets-a-silent-server ()
  (contexture-conversation-test-played '(((progress (:kind :text :text "One")) hang))
    (contexture-conversation-test-begin "Count" "One")
    (contexture-conversation-cancel)
    (should (contexture-conversation--busy-p))
    (contexture-conversation-cancel)
    (contexture-conversation-test-wait)
    (should-not (contexture-conversation--busy-p))))

(ert-deftest contexture-conversation-cancel-without-a-turn-is-the-users-mistake ()
  (contexture-conversation-test-with nil
    (contexture-test-user-error "Nothing is being answered" (contexture-conversation-cancel))))

;;;; A question without an answer

(defun contexture-conversation-turn-tests--leave-unanswered (how)
  "Ask \"Count\", and leave it unanswered, as HOW says."
  (contexture-conversation-test-type "Count")
  (contexture-conversation-send)
  (pcase how
    ('failed nil)
    ('cancelled (llm-ert-wait-for (llm-ert-shown))
                (contexture-conversation-cancel))
    ('killed (llm-ert-wait-for (llm-ert-shown))
             (contexture-ert-kill-server t)))
  (contexture-conversation-test-wait)
  (should (equal (contexture-conversation--text) "Count"))
  (llm-ert-wait-for (null (contexture-conversation-test-log))))

(ert-deftest contexture-conversation-unanswered-question-is-free ()
  (dolist (how '(failed cancelled killed))
    (dolist (case '((again "Count") (edited "Count to 2") (removed "Else")))
      (contexture-conversation-test-with
          `(,@(pcase how
                ('failed '(((error bad-request "no"))))
                ('cancelled '((hang)))
                ;; After the loss of the server the question is asked once more.
                ('killed '((hang) ((error bad-request "no")))))
            ("Done"))
        (ert-info ((format "%s %s" how (car case)))
          (contexture-conversation-turn-tests--leave-unanswered how)
          (pcase (car case)
            ('again (contexture-conversation-retry))
            (_ (contexture-conversation--set-text (nth 1 case))
               (contexture-conversation-send)))
          (contexture-conversation-test-wait)
          (should (equal (contexture-conversation-test-log)
                         `((:user ,(nth 1 case)) (:assistant "Done"))))
          ;; The model was sent the question once, and nothing that was taken back.
          (should (equal (mapcar (lambda (it) (plist-get it :content))
                                 (cl-remove "system"
                                            (plist-get (car (last (llm-ert-shown)))
                                                       :messages)
                                            :key (lambda (it)
                                                   (format "%s" (plist-get it :role)))
                                            :test #'equal))
                         (list (nth 1 case)))))))))

;;;; Asking again

(ert-deftest contexture-conversation-retry-replaces-the-answer ()
  (contexture-conversation-test-with '(("Bad") ("Good"))
    (contexture-conversation-test-send "Well?")
    (contexture-conversation-retry)
    (contexture-conversation-test-wait)
    (should (equal (contexture-conversation-test-log) '((:user "Well?") (:assistant "Good"))))
    (should-not (string-search "Bad" (contexture-conversation-test-shown)))
    (should (= (length contexture-conversation--messages) 2))))

(ert-deftest contexture-conversation-retry-keeps-what-was-added-since ()
  (contexture-conversation-test-with '(("Bad") ("Good"))
    (contexture-conversation-test-send "Well?")
    (contexture-request 'add-context (list :manager contexture-context :content "more"))
    (contexture-conversation-retry)
    (contexture-conversation-test-wait)
    (should (equal (mapcar (lambda (it) (plist-get it :content))
                           (contexture-test-items))
                   '("more")))
    (should (equal (contexture-conversation-test-log) '((:user "Well?") (:assistant "Good"))))))

(ert-deftest contexture-conversation-retry-after-an-error-sends-the-text ()
  (contexture-conversation-test-with '(((error quota-exhausted "no money")) ("Yes"))
    (contexture-conversation-test-send "Well?")
    (contexture-conversation-retry)
    (contexture-conversation-test-wait)
    (should (equal (contexture-conversation--text) ""))
    (should (equal (contexture-conversation-test-log) '((:user "Well?") (:assistant "Yes"))))))

(ert-deftest contexture-conversation-retry-without-checkpoints-says-so ()
  (contexture-conversation-test-with '(("Bad") ("Good"))
    (contexture-conversation-test-keep-no-turns)
    (contexture-conversation-test-send "Well?")
    (contexture-conversation-retry)
    (contexture-conversation-test-wait)
    (should (string-search "Where that question began was not noted" (contexture-conversation-test-shown)))
    (should (= (length (contexture-conversation-test-log)) 4))))

(ert-deftest contexture-conversation-retry-needs-a-question ()
  (contexture-conversation-test-with nil
    (contexture-test-user-error "You have asked nothing" (contexture-conversation-retry))))

(ert-deftest contexture-conversation-edit-replaces-a-question-and-what-followed ()
  (contexture-conversation-test-with '(("A1") ("A2") ("A3"))
    (contexture-conversation-test-send "Q1")
    (contexture-conversation-test-send "Q2")
    (contexture-conversation-test-goto "Q1")
    (contexture-conversation-edit)
    (should (equal (contexture-conversation--text) "Q1"))
    (insert " really")
    (contexture-conversation-send)
    (contexture-conversation-test-wait)
    (should (equal (contexture-conversation-test-log)
                   '((:user "Q1 really") (:assistant "A3"))))
    (should-not (string-search "Q2" (contexture-conversation-test-shown)))))

(ert-deftest contexture-conversation-edit-can-be-left ()
  (contexture-conversation-test-with '(("A1"))
    (contexture-conversation-test-send "Q1")
    (contexture-conversation-edit)
    (contexture-conversation-cancel)
    (should (equal (contexture-conversation--text) ""))
    (should-not contexture-conversation--editing)
    (should (= (length (contexture-conversation-test-log)) 2))))

(ert-deftest contexture-conversation-edit-works-in-a-session-that-was-opened-again ()
  (contexture-conversation-test-with '(("A1") ("A2") ("A3"))
    (contexture-conversation-test-send "Q1")
    (contexture-conversation-test-send "Q2")
    (kill-buffer)
    (contexture-conversation-test-open "talk")
    (contexture-conversation-test-goto "A2")
    (contexture-conversation-edit)
    (insert "!")
    (contexture-conversation-send)
    (contexture-conversation-test-wait)
    (should (equal (mapcar #'cadr (contexture-conversation-test-log)) '("Q1" "A1" "Q2!" "A3")))))

(ert-deftest contexture-conversation-branch-goes-on-after-an-answer ()
  (contexture-conversation-test-with '(("A1") ("A2") ("B2"))
    (contexture-conversation-test-send "Q1")
    (contexture-conversation-test-send "Q2")
    (contexture-conversation-test-goto "A1")
    (contexture-conversation-branch "other")
    (llm-ert-wait-for (get-buffer "*contexture: other*"))
    (set-buffer "*contexture: other*")
    (llm-ert-wait-for contexture-conversation--messages)
    (contexture-conversation-test-send "Q2b")
    (should (equal (mapcar #'cadr (contexture-conversation-test-log)) '("Q1" "A1" "Q2b" "B2")))
    (set-buffer "*contexture: talk*")
    (should (equal (mapcar #'cadr (contexture-conversation-test-log)) '("Q1" "A1" "Q2" "A2")))))

(ert-deftest contexture-conversation-branch-at-a-question-has-it-changed ()
  (contexture-conversation-test-with '(("A1") ("A2"))
    (contexture-conversation-test-send "Q1")
    (contexture-conversation-test-send "Q2")
    (contexture-conversation-test-goto "Q2")
    (contexture-conversation-branch "other")
    (llm-ert-wait-for (get-buffer "*contexture: other*"))
    (set-buffer "*contexture: other*")
    (llm-ert-wait-for contexture-conversation--messages)
    (should (equal (contexture-conversation--text) "Q2"))
    (should (equal (mapcar #'cadr (contexture-conversation-test-log)) '("Q1" "A1")))))

(ert-deftest contexture-conversation-branch-at-the-end-forks-as-it-is ()
  (contexture-conversation-test-with '(("A1"))
    (contexture-request 'add-context (list :manager contexture-context :content "one"))
    (contexture-conversation-test-send "Q1")
    (goto-char (point-max))
    (contexture-conversation-branch "other")
    (llm-ert-wait-for (get-buffer "*contexture: other*"))
    (set-buffer "*contexture: other*")
    (llm-ert-wait-for contexture-conversation--items)
    (should (equal (mapcar #'cadr (contexture-conversation-test-log)) '("Q1" "A1")))))

(ert-deftest contexture-conversation-branch-without-checkpoints-copies ()
  (contexture-conversation-test-with '(("A1") ("A2"))
    (contexture-conversation-test-keep-no-turns)
    (contexture-conversation-test-send "Q1")
    (contexture-conversation-test-send "Q2")
    (contexture-conversation-test-goto "A1")
    (contexture-conversation-branch "other")
    (llm-ert-wait-for (get-buffer "*contexture: other*"))
    (set-buffer "*contexture: other*")
    (should (equal (mapcar #'cadr (contexture-conversation-test-log)) '("Q1" "A1")))))

;;;; The name of a conversation

(ert-deftest contexture-conversation-names-a-conversation-after-its-first-question ()
  (contexture-conversation-test-with '(("A") ("B") ("C") ("D"))
    (dolist (expected '("Why is it so?" "Why is it so? (2)"))
      (contexture-conversation-test-open (plist-get (contexture-request 'open-session) :session))
      (contexture-conversation-test-send "Why is\n  it so?")
      (llm-ert-wait-for
          (equal (plist-get contexture-conversation--session :session) expected))
      (should (equal (buffer-name) (contexture-conversation--buffer-name expected)))
      (contexture-conversation-test-send "And then?")
      (contexture-test-settle)
      (should (equal (plist-get contexture-conversation--session :session) expected)))))

(ert-deftest contexture-conversation-keeps-the-name-that-a-user-chose ()
  (contexture-conversation-test-with '(("A"))
    (contexture-conversation-test-send "Why?")
    (contexture-test-settle)
    (should (equal (plist-get contexture-conversation--session :session) "talk"))))

(ert-deftest contexture-conversation-lines-of-long-texts-take-no-time ()
  (dolist (unit '("x\n" "word " "\u200b\u00e9 \t" "\""))
    (let ((text (apply #'concat (make-list (/ 1000000 (length unit)) unit))))
      (contexture-test-at-once
        (should (string-suffix-p "..." (contexture-conversation--one-line text 100))))
      (contexture-test-at-once
        (should (string-suffix-p "..." (contexture-conversation--first-words text))))))
  (should (equal "a b c" (contexture-conversation--one-line "\n  a\n\tb  c \n" 100)))
  ;; Blanks hide nothing.
  (should (equal "a ..." (contexture-conversation--one-line
                          (concat "a" (make-string 5000 ?\s) "b") 100)))
  (should (equal "a b" (contexture-conversation--one-line
                        (concat (make-string 5000 ?\n) "a" (make-string 50 ?\s) "b") 100)))
  (should (equal "" (contexture-conversation--one-line (make-string 100 ?\n) 100))))

(provide 'contexture-conversation-turn-tests)
;;; contexture-conversation-turn-tests.el ends here
