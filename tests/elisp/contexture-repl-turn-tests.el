;;; contexture-repl-turn-tests.el --- Tests of turns that go otherwise  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Failing, cancelling, asking again, changing a question, branching.

;;; Code:

(require 'contexture-repl-test-helper)

;;;; Failing

(ert-deftest contexture-repl-without-a-provider-says-what-to-do ()
  (contexture-repl-test-with nil
    (dolist (text '("Anybody?" ""))
      (contexture-repl-test-send text)
      (should (equal (contexture-repl--text) "Anybody?"))
      (should (equal (string-trim (contexture-repl-test-shown))
                     (concat contexture-repl--no-model
                             " Then, RET asks the question at the prompt again."))))
    (contexture-repl--forget-no-model)
    (should (equal (string-trim (contexture-repl-test-shown)) ""))
    (should-not contexture-repl--messages)
    (should-not contexture-repl--turns)))

(ert-deftest contexture-repl-says-so-when-the-server-has-no-chat ()
  (contexture-test-with-state
    (let ((contexture-repl-history-file nil) (contexture-repl--recent nil))
      (save-window-excursion
        (contexture-repl-test-open "talk")
        (contexture-repl-test-send "Anybody?")
        (unless (string-search "No model is set up" (contexture-repl-test-shown))
          (should (string-search "cannot talk to models" (contexture-repl-test-shown))))
        (should (equal (contexture-repl--text) "Anybody?"))))))

(ert-deftest contexture-repl-says-what-to-do-after-each-error ()
  (pcase-dolist (`(,kind ,advice)
                 '((:authentication "needs a valid key")
                   (:unconfigured "needs a valid key")
                   (:rate-limited "Wait a little")
                   (:quota-exhausted "plan of your account")
                   (:context-too-long "/drop items")
                   (:bad-request "/model chooses")
                   (:unavailable "RET asks the question at the prompt")
                   (:malformed "RET asks the question at the prompt")))
    (should (string-match-p advice (contexture-repl--advice kind 1)))))

(ert-deftest contexture-repl-shows-costs-with-the-digits-that-matter ()
  (pcase-dolist (`(,cost ,text) '((0.0 "0.0000") (1.23456789 "1.2346") (0.0012 "0.0012")
                                  (0.00012345 "0.00012") (0.0000009999 "0.000001")
                                  (1.5e-20 "0")))
    (should (equal (contexture-repl--cost-text cost) text))))

(ert-deftest contexture-repl-puts-what-failed-before-what-was-written-since ()
  (contexture-repl-test-played '((error 1 "busy" (:kind :rate-limited)))
    (contexture-repl-test-type "First")
    (contexture-repl-send)
    (contexture-repl-test-type "Second")
    (contexture-repl-test-wait)
    (should (equal (contexture-repl--text) "First\n\nSecond"))))

(ert-deftest contexture-repl-keeps-an-answer-that-broke-off ()
  (contexture-repl-test-with '(("Half of" (error bad-request "it went away")))
    (contexture-repl-test-send "All?")
    (should (string-match-p "Half of\n\\+ Error: .*\n.*it went away.*\n" (contexture-repl-test-shown)))
    (should (equal (contexture-repl--text) "All?"))))

(ert-deftest contexture-repl-has-the-server-forget-what-was-not-answered ()
  (contexture-repl-test-with '(((error bad-request "no")) ("Yes"))
    (contexture-repl-test-send "All?")
    (contexture-ert-wait-for (null (contexture-repl-test-log)))
    (contexture-repl-send)
    (contexture-repl-test-wait)
    (should (equal (contexture-repl-test-log) '((:user "All?") (:assistant "Yes"))))))

(ert-deftest contexture-repl-gives-back-what-no-server-can-take ()
  (contexture-repl-test-with nil
    (contexture-disconnect)
    (let ((contexture-server-command "no-such-program-anywhere"))
      (contexture-repl-test-type "Anybody?")
      (contexture-repl-send)
      (should (equal (contexture-repl--text) "Anybody?"))
      (should (string-search "There is no program" (contexture-repl-test-shown))))))

;;;; Cancelling

(ert-deftest contexture-repl-cancel-keeps-what-has-come ()
  (contexture-repl-test-with '(("One, two" hang))
    (contexture-repl-test-begin "Count" "One, two")
    (contexture-repl-cancel)
    (contexture-repl-test-wait)
    (should (string-match-p "One, two\nCancelled; C-c C-r asks again\\.\n"
                            (contexture-repl-test-shown)))
    (should (equal (contexture-repl--text) ""))
    (should (equal (contexture-repl-test-log) '((:user "Count") (:assistant "One, two"))))))

(ert-deftest contexture-repl-cancel-gives-back-what-has-no-answer ()
  (contexture-repl-test-with '((hang))
    (contexture-repl-test-type "Count")
    (contexture-repl-send)
    (contexture-ert-wait-for (contexture-ert-shown))
    (contexture-repl-cancel)
    (contexture-repl-test-wait)
    (should (equal (contexture-repl--text) "Count"))
    (should (string-search "your question is back at the prompt"
                           (contexture-repl-test-shown)))
    (contexture-ert-wait-for (null (contexture-repl-test-log)))))

(ert-deftest contexture-repl-cancel-at-once-asks-nobody ()
  (contexture-repl-test-with '(("One"))
    (contexture-repl-test-type "Count")
    (contexture-repl-send)
    (contexture-repl-cancel)
    (contexture-repl-test-wait)
    (contexture-ert-should-not-called 'chat)
    (should (equal (contexture-repl--text) "Count"))))

(ert-deftest contexture-repl-cancel-twice-forgets-a-silent-server ()
  (contexture-repl-test-played '(((progress (:kind :text :text "One")) hang))
    (contexture-repl-test-begin "Count" "One")
    (contexture-repl-cancel)
    (should (contexture-repl--busy-p))
    (contexture-repl-cancel)
    (contexture-repl-test-wait)
    (should-not (contexture-repl--busy-p))))

(ert-deftest contexture-repl-cancel-without-a-turn-is-the-users-mistake ()
  (contexture-repl-test-with nil
    (contexture-test-user-error "Nothing is being answered" (contexture-repl-cancel))))

;;;; A question without an answer

(defun contexture-repl-turn-tests--leave-unanswered (how)
  "Ask \"Count\", and leave it unanswered, as HOW says."
  (contexture-repl-test-type "Count")
  (contexture-repl-send)
  (pcase how
    ('failed nil)
    ('cancelled (contexture-ert-wait-for (contexture-ert-shown))
                (contexture-repl-cancel))
    ('killed (contexture-ert-wait-for (contexture-ert-shown))
             (contexture-ert-kill-server t)))
  (contexture-repl-test-wait)
  (should (equal (contexture-repl--text) "Count"))
  (contexture-ert-wait-for (null (contexture-repl-test-log))))

(ert-deftest contexture-repl-unanswered-question-is-free ()
  (dolist (how '(failed cancelled killed))
    (dolist (case '((again "Count") (edited "Count to 2") (removed "Else")))
      (contexture-repl-test-with
          `(,@(pcase how
                ('failed '(((error bad-request "no"))))
                ('cancelled '((hang)))
                ;; After the loss of the server the question is asked once more.
                ('killed '((hang) ((error bad-request "no")))))
            ("Done"))
        (ert-info ((format "%s %s" how (car case)))
          (contexture-repl-turn-tests--leave-unanswered how)
          (pcase (car case)
            ('again (contexture-repl-retry))
            (_ (contexture-repl--set-text (nth 1 case))
               (contexture-repl-send)))
          (contexture-repl-test-wait)
          (should (equal (contexture-repl-test-log)
                         `((:user ,(nth 1 case)) (:assistant "Done"))))
          ;; The model was sent the question once, and nothing that was taken back.
          (should (equal (mapcar (lambda (it) (plist-get it :content))
                                 (cl-remove "system"
                                            (plist-get (car (last (contexture-ert-shown)))
                                                       :messages)
                                            :key (lambda (it)
                                                   (format "%s" (plist-get it :role)))
                                            :test #'equal))
                         (list (nth 1 case)))))))))

;;;; Asking again

(ert-deftest contexture-repl-retry-replaces-the-answer ()
  (contexture-repl-test-with '(("Bad") ("Good"))
    (contexture-repl-test-send "Well?")
    (contexture-repl-retry)
    (contexture-repl-test-wait)
    (should (equal (contexture-repl-test-log) '((:user "Well?") (:assistant "Good"))))
    (should-not (string-search "Bad" (contexture-repl-test-shown)))
    (should (= (length contexture-repl--messages) 2))))

(ert-deftest contexture-repl-retry-keeps-what-was-added-since ()
  (contexture-repl-test-with '(("Bad") ("Good"))
    (contexture-repl-test-send "Well?")
    (contexture-request 'add-context (list :manager contexture-manager :content "more"))
    (contexture-repl-retry)
    (contexture-repl-test-wait)
    (should (equal (mapcar (lambda (it) (plist-get it :content))
                           (contexture-test-items))
                   '("more")))
    (should (equal (contexture-repl-test-log) '((:user "Well?") (:assistant "Good"))))))

(ert-deftest contexture-repl-retry-after-an-error-sends-the-text ()
  (contexture-repl-test-with '(((error quota-exhausted "no money")) ("Yes"))
    (contexture-repl-test-send "Well?")
    (contexture-repl-retry)
    (contexture-repl-test-wait)
    (should (equal (contexture-repl--text) ""))
    (should (equal (contexture-repl-test-log) '((:user "Well?") (:assistant "Yes"))))))

(ert-deftest contexture-repl-retry-without-checkpoints-says-so ()
  (let ((contexture-repl-checkpoints nil))
    (contexture-repl-test-with '(("Bad") ("Good"))
      (contexture-repl-test-send "Well?")
      (contexture-repl-retry)
      (contexture-repl-test-wait)
      (should (string-search "No checkpoint was taken" (contexture-repl-test-shown)))
      (should (= (length (contexture-repl-test-log)) 4)))))

(ert-deftest contexture-repl-retry-needs-a-question ()
  (contexture-repl-test-with nil
    (contexture-test-user-error "You have asked nothing" (contexture-repl-retry))))

(ert-deftest contexture-repl-edit-replaces-a-question-and-what-followed ()
  (contexture-repl-test-with '(("A1") ("A2") ("A3"))
    (contexture-repl-test-send "Q1")
    (contexture-repl-test-send "Q2")
    (contexture-repl-test-goto "Q1")
    (contexture-repl-edit)
    (should (equal (contexture-repl--text) "Q1"))
    (insert " really")
    (contexture-repl-send)
    (contexture-repl-test-wait)
    (should (equal (contexture-repl-test-log)
                   '((:user "Q1 really") (:assistant "A3"))))
    (should-not (string-search "Q2" (contexture-repl-test-shown)))))

(ert-deftest contexture-repl-edit-can-be-left ()
  (contexture-repl-test-with '(("A1"))
    (contexture-repl-test-send "Q1")
    (contexture-repl-edit)
    (contexture-repl-cancel)
    (should (equal (contexture-repl--text) ""))
    (should-not contexture-repl--editing)
    (should (= (length (contexture-repl-test-log)) 2))))

(ert-deftest contexture-repl-edit-works-in-a-session-that-was-opened-again ()
  (contexture-repl-test-with '(("A1") ("A2") ("A3"))
    (contexture-repl-test-send "Q1")
    (contexture-repl-test-send "Q2")
    (kill-buffer)
    (contexture-repl-test-open "talk")
    (contexture-repl-test-goto "A2")
    (contexture-repl-edit)
    (insert "!")
    (contexture-repl-send)
    (contexture-repl-test-wait)
    (should (equal (mapcar #'cadr (contexture-repl-test-log)) '("Q1" "A1" "Q2!" "A3")))))

(ert-deftest contexture-repl-branch-goes-on-after-an-answer ()
  (contexture-repl-test-with '(("A1") ("A2") ("B2"))
    (contexture-repl-test-send "Q1")
    (contexture-repl-test-send "Q2")
    (contexture-repl-test-goto "A1")
    (contexture-repl-branch "other")
    (contexture-ert-wait-for (get-buffer "*contexture: other*"))
    (set-buffer "*contexture: other*")
    (contexture-ert-wait-for contexture-repl--messages)
    (contexture-repl-test-send "Q2b")
    (should (equal (mapcar #'cadr (contexture-repl-test-log)) '("Q1" "A1" "Q2b" "B2")))
    (set-buffer "*contexture: talk*")
    (should (equal (mapcar #'cadr (contexture-repl-test-log)) '("Q1" "A1" "Q2" "A2")))))

(ert-deftest contexture-repl-branch-at-a-question-has-it-changed ()
  (contexture-repl-test-with '(("A1") ("A2"))
    (contexture-repl-test-send "Q1")
    (contexture-repl-test-send "Q2")
    (contexture-repl-test-goto "Q2")
    (contexture-repl-branch "other")
    (contexture-ert-wait-for (get-buffer "*contexture: other*"))
    (set-buffer "*contexture: other*")
    (contexture-ert-wait-for contexture-repl--messages)
    (should (equal (contexture-repl--text) "Q2"))
    (should (equal (mapcar #'cadr (contexture-repl-test-log)) '("Q1" "A1")))))

(ert-deftest contexture-repl-branch-at-the-end-forks-as-it-is ()
  (contexture-repl-test-with '(("A1"))
    (contexture-request 'add-context (list :manager contexture-manager :content "one"))
    (contexture-repl-test-send "Q1")
    (goto-char (point-max))
    (contexture-repl-branch "other")
    (contexture-ert-wait-for (get-buffer "*contexture: other*"))
    (set-buffer "*contexture: other*")
    (contexture-ert-wait-for contexture-repl--items)
    (should (equal (mapcar #'cadr (contexture-repl-test-log)) '("Q1" "A1")))))

(ert-deftest contexture-repl-branch-without-checkpoints-copies ()
  (let ((contexture-repl-checkpoints nil))
    (contexture-repl-test-with '(("A1") ("A2"))
      (contexture-repl-test-send "Q1")
      (contexture-repl-test-send "Q2")
      (contexture-repl-test-goto "A1")
      (contexture-repl-branch "other")
      (contexture-ert-wait-for (get-buffer "*contexture: other*"))
      (set-buffer "*contexture: other*")
      (should (equal (mapcar #'cadr (contexture-repl-test-log)) '("Q1" "A1"))))))

;;;; The name of a conversation

(ert-deftest contexture-repl-names-a-conversation-after-its-first-question ()
  (contexture-repl-test-with '(("A") ("B") ("C") ("D"))
    (dolist (expected '("Why is it so?" "Why is it so? (2)"))
      (contexture-repl-test-open (plist-get (contexture-request 'open-session) :session))
      (contexture-repl-test-send "Why is\n  it so?")
      (contexture-ert-wait-for
          (equal (plist-get contexture-repl--session :session) expected))
      (should (equal (buffer-name) (contexture-repl--buffer-name expected)))
      (contexture-repl-test-send "And then?")
      (contexture-test-settle)
      (should (equal (plist-get contexture-repl--session :session) expected)))))

(ert-deftest contexture-repl-keeps-the-name-that-a-user-chose ()
  (contexture-repl-test-with '(("A"))
    (contexture-repl-test-send "Why?")
    (contexture-test-settle)
    (should (equal (plist-get contexture-repl--session :session) "talk"))))

(provide 'contexture-repl-turn-tests)
;;; contexture-repl-turn-tests.el ends here
