;;; contexture-conversation-manage-tests.el --- Tests of managing a history  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Templates that manage a history: choosing them, what a turn says of it,
;; what comes back after a restart, and the list of managed views.  The
;; server is real, and so is its model, which follows a script.

;;; Code:

(require 'contexture-conversation-test-helper)
(require 'contexture-conversations)
(require 'contexture-dashboard)

(defun contexture-conversation-manage-tests--at-once ()
  "Have the history managed in each turn, however short it is."
  (contexture-request 'configure-session
                      (list :session (contexture-conversation--session-id) :token-threshold 0)))

(defun contexture-conversation-manage-tests--settings ()
  "Return what the server has in effect for this conversation."
  (contexture-test-settle)
  (contexture-request 'configure-session
                      (list :session (contexture-conversation--session-id))))

;;;; Choosing

(ert-deftest contexture-conversation-manage-choice-is-kept-by-the-server ()
  (contexture-conversation-test-with '(("A"))
    (contexture-conversation-switch-notes "goal-oriented")
    (should (string-search "notes: goal-oriented" (contexture-conversation-test-header)))
    (let ((settings (contexture-conversation-manage-tests--settings)))
      (should (plist-get settings :manage))
      (should (equal (plist-get settings :template) "goal-oriented")))
    (contexture-conversation-switch-notes "off")
    (should-not (string-search "notes" (contexture-conversation-test-header)))
    (should-not (plist-get (contexture-conversation-manage-tests--settings) :manage))))

(ert-deftest contexture-conversation-manage-offers-the-templates-that-manage ()
  (contexture-test-with-server
    (let ((questions
           (cl-loop for template in (contexture-request 'list-templates nil)
                    for name = (plist-get template :name)
                    for body = (plist-get (contexture-request 'list-templates
                                                              (list :name name))
                                          :body)
                    ;; What manages a history goes on from its own summary.
                    unless (string-search "prior_summary" body) collect name)))
      (should (equal (sort questions #'string<) contexture-conversation--questions)))))

(ert-deftest contexture-conversation-manage-choice-that-is-refused-changes-nothing ()
  (contexture-conversation-test-with '(("A"))
    (contexture-conversation-switch-notes "code-review")
    (contexture-test-settle)
    (let ((start (with-current-buffer (messages-buffer) (point-max-marker))))
      (contexture-conversation-test-send "/notes nosuch")
      (llm-ert-wait-for (string-search "Error: no template \"nosuch\""
                                              (contexture-conversation-test-shown)))
      (contexture-test-settle)
      (should-not (contexture-test--message-after start "nosuch manages")))
    (should (string-search "notes: code-review" (contexture-conversation-test-header)))
    (should (equal (plist-get contexture-conversation--settings :template) "code-review"))
    (should (equal (contexture-conversation--text) "/notes nosuch"))))

(ert-deftest contexture-conversation-manage-toggles-with-the-template-chosen-last ()
  (contexture-conversation-test-with '(("A"))
    (contexture-conversation-switch-notes "code-review")
    (contexture-conversation-toggle-notes)
    (should-not (string-search "notes" (contexture-conversation-test-header)))
    (contexture-conversation-toggle-notes)
    (should (string-search "notes: code-review" (contexture-conversation-test-header)))))

(ert-deftest contexture-conversation-manage-header-has-a-button-and-a-menu ()
  (contexture-conversation-test-with '(("A"))
    (llm-ert-wait-for contexture-conversation--templates)
    (contexture-conversation-switch-notes "goal-oriented")
    (let* ((part (cl-find "notes: goal-oriented" header-line-format :test #'equal
                          :key (lambda (it) (substring-no-properties it))))
           (map (get-text-property 0 'keymap part)))
      (should (lookup-key map [header-line mouse-1]))
      (should (eq (lookup-key map [header-line mouse-3])
                  #'contexture-conversation-choose-notes)))
    (let ((names (mapcar (lambda (it) (and (vectorp it) (aref it 0)))
                         (contexture-conversation--template-menu))))
      (should (member "goal-oriented" names))
      (should (member "Send the whole history" names)))
    (should (keymapp (lookup-key contexture-conversation-mode-map [menu-bar Conversation])))))

(ert-deftest contexture-conversation-manage-comes-back-in-a-new-emacs ()
  (contexture-conversation-test-with '(("A"))
    (contexture-conversation-switch-notes "debug-error")
    (contexture-test-settle)
    (kill-buffer)
    (delete-file contexture-conversation-history-file)
    (contexture-conversation-test-open "talk")
    (llm-ert-wait-for (string-search "notes: debug-error"
                                            (contexture-conversation-test-header)))))

(ert-deftest contexture-conversation-manage-comes-back-after-the-server-was-killed ()
  (contexture-conversation-test-with '(("A"))
    (contexture-conversation-switch-notes "debug-error")
    (contexture-test-settle)
    (contexture-ert-kill-server t)
    (llm-ert-wait-for (not (contexture-running-p)))
    (should (equal (plist-get (contexture-conversation-manage-tests--settings) :template)
                   "debug-error"))
    (contexture-conversation-test-send "Q")
    (should (string-search "with debug-error" (contexture-conversation-test-shown)))))

(ert-deftest contexture-conversation-manage-follows-what-is-set-elsewhere ()
  (contexture-conversation-test-with '(("A"))
    (contexture-request 'configure-session
                        '(:session "talk" :manage t :template "goal-oriented"))
    (llm-ert-wait-for (string-search "notes: goal-oriented"
                                            (contexture-conversation-test-header)))))

(ert-deftest contexture-conversation-manage-is-switched-while-an-answer-comes ()
  (contexture-conversation-test-with '(("One" hang) ("Two"))
    (contexture-conversation-test-begin "Count" "One")
    (contexture-test-at-once
      (contexture-conversation-switch-notes "goal-oriented"))
    (should (string-search "notes: goal-oriented" (contexture-conversation-test-header)))
    (llm-ert-wait-for
        (plist-get (contexture-request 'configure-session '(:session "talk")) :manage))
    (should (contexture-conversation--busy-p))
    (contexture-conversation-cancel)
    (contexture-conversation-test-wait)
    (contexture-conversation-test-send "And now?")
    (should (string-search "with goal-oriented" (contexture-conversation-test-shown)))))

(ert-deftest contexture-conversation-manage-is-switched-while-the-server-is-stopped ()
  (contexture-conversation-test-with '(("One"))
    (contexture-test-settle)
    (contexture-ert-with-stopped-server
      (contexture-test-at-once
        (contexture-conversation-switch-notes "goal-oriented")
        (contexture-conversation-toggle-notes)
        (contexture-conversation-toggle-notes))
      (should (string-search "notes: goal-oriented" (contexture-conversation-test-header))))
    (should (plist-get (contexture-conversation-manage-tests--settings) :manage))
    (should (string-search "notes: goal-oriented" (contexture-conversation-test-header)))))

(ert-deftest contexture-conversation-manage-last-choice-counts ()
  (contexture-conversation-test-with '(("One"))
    (dotimes (_ 5)
      (contexture-conversation-switch-notes "goal-oriented")
      (contexture-conversation-switch-notes "off"))
    (should-not (plist-get (contexture-conversation-manage-tests--settings) :manage))
    (contexture-test-settle)
    (should-not (string-search "notes" (contexture-conversation-test-header)))))

;;;; What a turn says

(ert-deftest contexture-conversation-manage-turn-tells-tokens ()
  (contexture-conversation-test-with
      (list (list (apply #'concat (make-list 400 "Some words of an answer. ")))
            '("**Goal**: to count.")
            '("Two."))
    (contexture-conversation-manage-tests--at-once)
    (contexture-conversation-test-send "Count to one")
    (contexture-conversation-switch-notes "goal-oriented")
    (contexture-conversation-test-send "And on")
    (should (string-match-p
             "2400 tokens in, .*\nNotes with goal-oriented: [0-9]+ → [0-9]+ tokens\n"
             (contexture-conversation-test-shown)))
    (should (equal (mapcar #'car (contexture-conversation-test-log))
                   '(:user :assistant :user :assistant)))))

(ert-deftest contexture-conversation-manage-turn-tells-that-it-is-short ()
  (contexture-conversation-test-with '(("One"))
    (contexture-conversation-switch-notes "goal-oriented")
    (contexture-conversation-test-send "Count")
    (should (string-match-p "No notes with goal-oriented yet: the history, [0-9]+ tokens?, is"
                            (contexture-conversation-test-shown)))))

(ert-deftest contexture-conversation-manage-turn-that-fails-goes-on-and-says-why ()
  (contexture-conversation-test-with
      (list (list (apply #'concat (make-list 400 "Some words of an answer. ")))
            '((error bad-request "no such words"))
            '("Two"))
    (contexture-conversation-manage-tests--at-once)
    (contexture-conversation-test-send "Count to one")
    (contexture-conversation-switch-notes "goal-oriented")
    (contexture-conversation-test-send "And on")
    (should (string-match-p "scripted\nTwo\n" (contexture-conversation-test-shown)))
    (should (string-match-p "No notes were taken, so the whole history was sent: .*no such words"
                            (contexture-conversation-test-shown)))))

(ert-deftest contexture-conversation-manage-directive-is-for-one-turn ()
  (contexture-conversation-test-with '(("One") ("Two"))
    (contexture-conversation-switch-notes "off")
    (contexture-conversation-test-send "@context-helper code-review\nLook")
    (should (string-search "with code-review" (contexture-conversation-test-shown)))
    (should (equal (cadr (car (contexture-conversation-test-log)))
                   "@context-helper code-review\nLook"))
    (contexture-conversation-test-send "Again")
    (should-not (string-search "with code-review"
                               (substring (contexture-conversation-test-shown)
                                          (string-search "Again" (contexture-conversation-test-shown)))))
    (should-not (string-search "notes" (contexture-conversation-test-header)))))

(ert-deftest contexture-conversation-manage-directive-completes ()
  (contexture-conversation-test-with '(("One"))
    (llm-ert-wait-for contexture-conversation--templates)
    (contexture-conversation-test-type "@context-h")
    (completion-at-point)
    (should (equal (contexture-conversation--text) "@context-helper "))
    (insert "goal")
    (completion-at-point)
    (should (equal (contexture-conversation--text) "@context-helper goal-oriented"))
    (insert "\n@context-h")
    (should-not (contexture-conversation--complete-directive))))

(ert-deftest contexture-conversation-manage-failure-elsewhere-is-shown ()
  (contexture-conversation-test-with '(("One"))
    (contexture-conversation--changed 'management-failed
                                      (list :session "talk" :id (contexture-conversation--session-id)
                                            :turn 3 :step :template :template "x"
                                            :reason "there is none"))
    (should (string-search "whole history was sent: template: there is none (notes of the kind x)"
                           (contexture-conversation-test-shown)))
    (contexture-conversation--changed 'management-failed '(:session "other" :reason "not here"))
    (should-not (string-search "not here" (contexture-conversation-test-shown)))))

;;;; Views

(defun contexture-conversation-manage-tests--views ()
  "Return the text of the list of views once it is there."
  (set-buffer contexture-conversation-notes-buffer)
  (contexture-test-settle)
  (buffer-substring-no-properties (point-min) (point-max)))

(ert-deftest contexture-conversation-manage-views-are-listed-and-shown ()
  (contexture-conversation-test-with '(("One") ("Two") ("Three") ("Four") ("Five"))
    (contexture-conversation-switch-notes "goal-oriented")
    (contexture-conversation-test-send "Count")
    (contexture-conversation-manage-tests--at-once)
    (contexture-conversation-test-send "On")
    (contexture-conversation-test-send "/notes list")
    (let ((text (contexture-conversation-manage-tests--views)))
      (should (string-match-p "^ +2 +goal-oriented +managed +[0-9]+" text))
      (should (string-match-p "^ +1 +goal-oriented +below-threshold" text)))
    (goto-char (point-min))
    (contexture-conversation-notes-show)
    (contexture-test-settle)
    (with-current-buffer contexture-conversation-turn-notes-buffer
      (should (string-match-p "^Status +managed$" (buffer-string)))
      (should (string-match-p "^Prompt\n\nYou keep the state of a task" (buffer-string)))
      (should (string-match-p "Output" (buffer-string))))))

(ert-deftest contexture-conversation-manage-view-is-asked-for-by-its-id ()
  (let ((view '(:id "view-7" :turn 3)) calls answer shown)
    (cl-letf (((symbol-function 'contexture-request-async)
               (lambda (_ params &rest handlers)
                 (push params calls)
                 (pcase-let ((`(,handler ,value) (pop answer)))
                   (funcall (plist-get handlers handler) value))))
              ((symbol-function 'contexture-conversation-notes--show)
               (lambda (view) (setq shown view))))
      (with-temp-buffer
        (contexture-conversation-notes-mode)
        (setq contexture-conversations--shown "talk"
              tabulated-list-entries (list (list '(:id "view-8") (make-vector 6 ""))
                                           (list view (make-vector 6 ""))))
        (tabulated-list-print)
        (goto-char (point-min))
        (forward-line)
        (let ((found '((:id "view-7" :prompt "P"))))
          (setq answer `((:success ,found)))
          (contexture-conversation-notes-show)
          (should (equal calls '((:view "view-7" :limit 1))))
          (should (equal (list shown) found))
          (setq answer '((:error (:code 1 :message "out of order")))
                shown nil)
          (contexture-test-message "Contexture: out of order"
            (contexture-conversation-notes-show))
          (should-not shown))))))

(ert-deftest contexture-conversation-manage-views-can-be-filtered ()
  (contexture-conversation-test-with '(("One"))
    (contexture-conversation-notes (contexture-conversation--session-id))
    (should (string-search "No notes were taken in this conversation" (contexture-conversation-manage-tests--views)))
    (contexture-conversation-notes-filter "failed")
    (should (string-search "no notes with this status" (contexture-conversation-manage-tests--views)))
    (contexture-test-user-error "no notes at point" (contexture-conversation-notes-show))))

(ert-deftest contexture-conversation-manage-views-have-the-statuses-of-the-server ()
  (contexture-test-with-server
    (cl-letf (((symbol-function 'completing-read)
               (lambda (_ choices &rest _) (throw 'choices choices))))
      (should (equal (sort (remove "all" (catch 'choices
                                           (call-interactively
                                            #'contexture-conversation-notes-filter)))
                           #'string<)
                     (sort (contexture-test-values 'list-notes "status") #'string<))))))

(ert-deftest contexture-conversation-manage-views-are-in-the-dashboard ()
  (contexture-conversation-test-with '(("Notes") ("One"))
    (contexture-conversation-switch-notes "goal-oriented")
    (contexture-conversation-manage-tests--at-once)
    (contexture-conversation-test-send "Count")
    (let ((id (contexture-conversation--session-id)))
      (contexture-dashboard id)
      (llm-ert-wait-for
          (string-match-p "Notes +\\[All notes\\]\n  Notes are taken of the kind goal-oriented\n\
  turn 1 +managed +goal-oriented +"
                          (buffer-substring-no-properties (point-min) (point-max)))))))

;;;; Names

(ert-deftest contexture-conversation-renamed-session-takes-its-buffer-and-draft-along ()
  (contexture-conversation-test-with '(("One"))
    (contexture-conversation-switch-model "large")
    (contexture-conversation-test-type "not sent")
    (contexture-conversation--keep-draft)
    (contexture-request 'configure-session '(:session "talk" :name "walk"))
    (llm-ert-wait-for (equal (buffer-name) "*contexture: walk*"))
    (should (string-search " walk" (contexture-conversation-test-header)))
    (let ((kept (contexture-conversation--file-contents)))
      (should (equal (plist-get kept :drafts) '(("walk" . "not sent"))))
      (should (equal (mapcar #'car (plist-get kept :sessions)) '("walk"))))
    (kill-buffer)
    (contexture-conversation-test-open "walk")
    (should (equal (contexture-conversation--text) "not sent"))
    (should (equal (plist-get contexture-conversation--settings :model) "large"))))

(ert-deftest contexture-conversation-renamed-session-leaves-a-buffer-of-another-name ()
  (contexture-conversation-test-with '(("One"))
    (rename-buffer "mine")
    (contexture-request 'configure-session '(:session "talk" :name "walk"))
    (llm-ert-wait-for (string-search " walk" (contexture-conversation-test-header)))
    (should (equal (buffer-name) "mine"))))

(provide 'contexture-conversation-manage-tests)
;;; contexture-conversation-manage-tests.el ends here
