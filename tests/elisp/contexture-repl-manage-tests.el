;;; contexture-repl-manage-tests.el --- Tests of managing a history  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Templates that manage a history: choosing them, what a turn says of it,
;; what comes back after a restart, and the list of managed views.  The
;; server is real, and so is its model, which follows a script.

;;; Code:

(require 'contexture-repl-test-helper)
(require 'contexture-session)
(require 'contexture-dashboard)

(defun contexture-repl-manage-tests--at-once ()
  "Have the history managed in each turn, however short it is."
  (contexture-request 'configure-session
                      (list :session (contexture-repl--session-id) :token-threshold 0)))

(defun contexture-repl-manage-tests--settings ()
  "Return what the server has in effect for this conversation."
  (contexture-test-settle)
  (contexture-request 'configure-session
                      (list :session (contexture-repl--session-id))))

;;;; Choosing

(ert-deftest contexture-repl-manage-choice-is-kept-by-the-server ()
  (contexture-repl-test-with '(("A"))
    (contexture-repl-switch-template "goal-oriented")
    (should (string-search "notes: goal-oriented" (contexture-repl-test-header)))
    (let ((settings (contexture-repl-manage-tests--settings)))
      (should (plist-get settings :manage))
      (should (equal (plist-get settings :template) "goal-oriented")))
    (contexture-repl-switch-template "off")
    (should-not (string-search "notes" (contexture-repl-test-header)))
    (should-not (plist-get (contexture-repl-manage-tests--settings) :manage))))

(ert-deftest contexture-repl-manage-offers-the-templates-that-manage ()
  (contexture-test-with-server
    (let ((questions
           (cl-loop for template in (contexture-request 'list-templates nil)
                    for name = (plist-get template :name)
                    for body = (plist-get (contexture-request 'resolve-template
                                                              (list :name name))
                                          :body)
                    ;; What manages a history goes on from its own summary.
                    unless (string-search "prior_summary" body) collect name)))
      (should (equal (sort questions #'string<) contexture-repl--questions)))))

(ert-deftest contexture-repl-manage-choice-that-is-refused-changes-nothing ()
  (contexture-repl-test-with '(("A"))
    (contexture-repl-switch-template "code-review")
    (contexture-test-settle)
    (let ((start (with-current-buffer (messages-buffer) (point-max-marker))))
      (contexture-repl-test-send "/template nosuch")
      (contexture-ert-wait-for (string-search "Error: no template \"nosuch\""
                                              (contexture-repl-test-shown)))
      (contexture-test-settle)
      (should-not (contexture-test--message-after start "nosuch manages")))
    (should (string-search "notes: code-review" (contexture-repl-test-header)))
    (should (equal (plist-get contexture-repl--settings :template) "code-review"))
    (should (equal (contexture-repl--text) "/template nosuch"))))

(ert-deftest contexture-repl-manage-toggles-with-the-template-chosen-last ()
  (contexture-repl-test-with '(("A"))
    (contexture-repl-switch-template "code-review")
    (contexture-repl-toggle-managing)
    (should-not (string-search "notes" (contexture-repl-test-header)))
    (contexture-repl-toggle-managing)
    (should (string-search "notes: code-review" (contexture-repl-test-header)))))

(ert-deftest contexture-repl-manage-header-has-a-button-and-a-menu ()
  (contexture-repl-test-with '(("A"))
    (contexture-ert-wait-for contexture-repl--templates)
    (contexture-repl-switch-template "goal-oriented")
    (let* ((part (cl-find "notes: goal-oriented" header-line-format :test #'equal
                          :key (lambda (it) (substring-no-properties it))))
           (map (get-text-property 0 'keymap part)))
      (should (lookup-key map [header-line mouse-1]))
      (should (eq (lookup-key map [header-line mouse-3])
                  #'contexture-repl-choose-template)))
    (let ((names (mapcar (lambda (it) (and (vectorp it) (aref it 0)))
                         (contexture-repl--template-menu))))
      (should (member "goal-oriented" names))
      (should (member "Send the whole history" names)))
    (should (keymapp (lookup-key contexture-repl-mode-map [menu-bar Chat])))))

(ert-deftest contexture-repl-manage-comes-back-in-a-new-emacs ()
  (contexture-repl-test-with '(("A"))
    (contexture-repl-switch-template "debug-error")
    (contexture-test-settle)
    (kill-buffer)
    (delete-file contexture-repl-history-file)
    (contexture-repl-test-open "talk")
    (contexture-ert-wait-for (string-search "notes: debug-error"
                                            (contexture-repl-test-header)))))

(ert-deftest contexture-repl-manage-comes-back-after-the-server-was-killed ()
  (contexture-repl-test-with '(("A"))
    (contexture-repl-switch-template "debug-error")
    (contexture-test-settle)
    (contexture-ert-kill-server t)
    (contexture-ert-wait-for (not (contexture-running-p)))
    (should (equal (plist-get (contexture-repl-manage-tests--settings) :template)
                   "debug-error"))
    (contexture-repl-test-send "Q")
    (should (string-search "with debug-error" (contexture-repl-test-shown)))))

(ert-deftest contexture-repl-manage-follows-what-is-set-elsewhere ()
  (contexture-repl-test-with '(("A"))
    (contexture-request 'configure-session
                        '(:session "talk" :manage t :template "goal-oriented"))
    (contexture-ert-wait-for (string-search "notes: goal-oriented"
                                            (contexture-repl-test-header)))))

(ert-deftest contexture-repl-manage-is-switched-while-an-answer-comes ()
  (contexture-repl-test-with '(("One" hang) ("Two"))
    (contexture-repl-test-begin "Count" "One")
    (contexture-test-at-once
      (contexture-repl-switch-template "goal-oriented"))
    (should (string-search "notes: goal-oriented" (contexture-repl-test-header)))
    (contexture-ert-wait-for
        (plist-get (contexture-request 'configure-session '(:session "talk")) :manage))
    (should (contexture-repl--busy-p))
    (contexture-repl-cancel)
    (contexture-repl-test-wait)
    (contexture-repl-test-send "And now?")
    (should (string-search "with goal-oriented" (contexture-repl-test-shown)))))

(ert-deftest contexture-repl-manage-is-switched-while-the-server-is-stopped ()
  (contexture-repl-test-with '(("One"))
    (contexture-test-settle)
    (contexture-ert-with-stopped-server
      (contexture-test-at-once
        (contexture-repl-switch-template "goal-oriented")
        (contexture-repl-toggle-managing)
        (contexture-repl-toggle-managing))
      (should (string-search "notes: goal-oriented" (contexture-repl-test-header))))
    (should (plist-get (contexture-repl-manage-tests--settings) :manage))
    (should (string-search "notes: goal-oriented" (contexture-repl-test-header)))))

(ert-deftest contexture-repl-manage-last-choice-counts ()
  (contexture-repl-test-with '(("One"))
    (dotimes (_ 5)
      (contexture-repl-switch-template "goal-oriented")
      (contexture-repl-switch-template "off"))
    (should-not (plist-get (contexture-repl-manage-tests--settings) :manage))
    (contexture-test-settle)
    (should-not (string-search "notes" (contexture-repl-test-header)))))

;;;; What a turn says

(ert-deftest contexture-repl-manage-turn-tells-tokens ()
  (contexture-repl-test-with
      (list (list (apply #'concat (make-list 400 "Some words of an answer. ")))
            '("**Goal**: to count.")
            '("Two."))
    (contexture-repl-manage-tests--at-once)
    (contexture-repl-test-send "Count to one")
    (contexture-repl-switch-template "goal-oriented")
    (contexture-repl-test-send "And on")
    (should (string-match-p
             "scripted: 2400 tokens in, .*\nNotes with goal-oriented: [0-9]+ → [0-9]+ tokens\n"
             (contexture-repl-test-shown)))
    (should (equal (mapcar #'car (contexture-repl-test-log))
                   '(:user :assistant :user :assistant)))))

(ert-deftest contexture-repl-manage-turn-tells-that-it-is-short ()
  (contexture-repl-test-with '(("One"))
    (contexture-repl-switch-template "goal-oriented")
    (contexture-repl-test-send "Count")
    (should (string-match-p "No notes with goal-oriented yet: the history, [0-9]+ tokens?, is"
                            (contexture-repl-test-shown)))))

(ert-deftest contexture-repl-manage-turn-that-fails-goes-on-and-says-why ()
  (contexture-repl-test-with
      (list (list (apply #'concat (make-list 400 "Some words of an answer. ")))
            '((error bad-request "no such words"))
            '("Two"))
    (contexture-repl-manage-tests--at-once)
    (contexture-repl-test-send "Count to one")
    (contexture-repl-switch-template "goal-oriented")
    (contexture-repl-test-send "And on")
    (should (string-match-p "scripted\nTwo\n" (contexture-repl-test-shown)))
    (should (string-match-p "No notes were taken, so the whole history was sent: .*no such words"
                            (contexture-repl-test-shown)))))

(ert-deftest contexture-repl-manage-directive-is-for-one-turn ()
  (contexture-repl-test-with '(("One") ("Two"))
    (contexture-repl-switch-template "off")
    (contexture-repl-test-send "@context-helper code-review\nLook")
    (should (string-search "with code-review" (contexture-repl-test-shown)))
    (should (equal (cadr (car (contexture-repl-test-log)))
                   "@context-helper code-review\nLook"))
    (contexture-repl-test-send "Again")
    (should-not (string-search "with code-review"
                               (substring (contexture-repl-test-shown)
                                          (string-search "Again" (contexture-repl-test-shown)))))
    (should-not (string-search "notes" (contexture-repl-test-header)))))

(ert-deftest contexture-repl-manage-directive-completes ()
  (contexture-repl-test-with '(("One"))
    (contexture-ert-wait-for contexture-repl--templates)
    (contexture-repl-test-type "@context-h")
    (completion-at-point)
    (should (equal (contexture-repl--text) "@context-helper "))
    (insert "goal")
    (completion-at-point)
    (should (equal (contexture-repl--text) "@context-helper goal-oriented"))
    (insert "\n@context-h")
    (should-not (contexture-repl--complete-directive))))

(ert-deftest contexture-repl-manage-failure-elsewhere-is-shown ()
  (contexture-repl-test-with '(("One"))
    (contexture-repl--changed 'management-failed
                              (list :session "talk" :id (contexture-repl--session-id)
                                    :turn 3 :step :template :template "x"
                                    :reason "there is none"))
    (should (string-search "whole history was sent: template: there is none (template x)"
                           (contexture-repl-test-shown)))
    (contexture-repl--changed 'management-failed '(:session "other" :reason "not here"))
    (should-not (string-search "not here" (contexture-repl-test-shown)))))

;;;; Views

(defun contexture-repl-manage-tests--views ()
  "Return the text of the list of views once it is there."
  (set-buffer contexture-session-views-buffer)
  (contexture-test-settle)
  (buffer-substring-no-properties (point-min) (point-max)))

(ert-deftest contexture-repl-manage-views-are-listed-and-shown ()
  (contexture-repl-test-with '(("One") ("Two") ("Three") ("Four") ("Five"))
    (contexture-repl-switch-template "goal-oriented")
    (contexture-repl-test-send "Count")
    (contexture-repl-manage-tests--at-once)
    (contexture-repl-test-send "On")
    (contexture-repl-test-send "/views")
    (let ((text (contexture-repl-manage-tests--views)))
      (should (string-match-p "^ +2 +goal-oriented +managed +[0-9]+" text))
      (should (string-match-p "^ +1 +goal-oriented +below-threshold" text)))
    (goto-char (point-min))
    (contexture-session-views-show)
    (contexture-test-settle)
    (with-current-buffer contexture-session-view-buffer
      (should (string-match-p "^Status +managed$" (buffer-string)))
      (should (string-match-p "^Prompt\n\nYou keep the state of a task" (buffer-string)))
      (should (string-match-p "Output" (buffer-string))))))

(ert-deftest contexture-repl-manage-view-is-asked-for-by-its-id ()
  (let ((view '(:id "view-7" :turn 3)) calls answer shown)
    (cl-letf (((symbol-function 'contexture-request-async)
               (lambda (_ params &rest handlers)
                 (push params calls)
                 (pcase-let ((`(,handler ,value) (pop answer)))
                   (funcall (plist-get handlers handler) value))))
              ((symbol-function 'contexture-session-views--show)
               (lambda (view) (setq shown view))))
      (with-temp-buffer
        (contexture-session-views-mode)
        (setq contexture-session--shown "talk"
              tabulated-list-entries (list (list '(:id "view-8") (make-vector 6 ""))
                                           (list view (make-vector 6 ""))))
        (tabulated-list-print)
        (goto-char (point-min))
        (forward-line)
        (let ((found '((:id "view-7" :prompt "P"))))
          (setq answer `((:success ,found)))
          (contexture-session-views-show)
          (should (equal calls '((:view "view-7" :limit 1))))
          (should (equal (list shown) found))
          (setq answer '((:error (:code 1 :message "out of order")))
                shown nil)
          (contexture-test-message "Contexture: out of order"
            (contexture-session-views-show))
          (should-not shown))))))

(ert-deftest contexture-repl-manage-views-can-be-filtered ()
  (contexture-repl-test-with '(("One"))
    (contexture-session-views (contexture-repl--session-id))
    (should (string-search "No notes were taken in this conversation" (contexture-repl-manage-tests--views)))
    (contexture-session-views-filter "failed")
    (should (string-search "no notes with this status" (contexture-repl-manage-tests--views)))
    (contexture-test-user-error "no notes at point" (contexture-session-views-show))))

(ert-deftest contexture-repl-manage-views-have-the-statuses-of-the-server ()
  (contexture-test-with-server
    (cl-letf (((symbol-function 'completing-read)
               (lambda (_ choices &rest _) (throw 'choices choices))))
      (should (equal (sort (remove "all" (catch 'choices
                                           (call-interactively
                                            #'contexture-session-views-filter)))
                           #'string<)
                     (sort (contexture-test-values 'list-notes "status") #'string<))))))

(ert-deftest contexture-repl-manage-views-are-in-the-dashboard ()
  (contexture-repl-test-with '(("Notes") ("One"))
    (contexture-repl-switch-template "goal-oriented")
    (contexture-repl-manage-tests--at-once)
    (contexture-repl-test-send "Count")
    (let ((id (contexture-repl--session-id)))
      (contexture-dashboard id)
      (contexture-ert-wait-for
          (string-match-p "Notes +\\[All notes\\]\n  Notes are taken with the template goal-oriented\n\
  turn 1 +managed +goal-oriented +"
                          (buffer-substring-no-properties (point-min) (point-max)))))))

;;;; Names

(ert-deftest contexture-repl-renamed-session-takes-its-buffer-and-draft-along ()
  (contexture-repl-test-with '(("One"))
    (contexture-repl-switch-model "large")
    (contexture-repl-test-type "not sent")
    (contexture-repl--keep-draft)
    (contexture-request 'rename-session '(:session "talk" :name "walk"))
    (contexture-ert-wait-for (equal (buffer-name) "*contexture: walk*"))
    (should (string-search " walk " (contexture-repl-test-header)))
    (let ((kept (contexture-repl--file-contents)))
      (should (equal (plist-get kept :drafts) '(("walk" . "not sent"))))
      (should (equal (mapcar #'car (plist-get kept :sessions)) '("walk"))))
    (kill-buffer)
    (contexture-repl-test-open "walk")
    (should (equal (contexture-repl--text) "not sent"))
    (should (equal (plist-get contexture-repl--settings :model) "large"))))

(ert-deftest contexture-repl-renamed-session-leaves-a-buffer-of-another-name ()
  (contexture-repl-test-with '(("One"))
    (rename-buffer "mine")
    (contexture-request 'rename-session '(:session "talk" :name "walk"))
    (contexture-ert-wait-for (string-search " walk " (contexture-repl-test-header)))
    (should (equal (buffer-name) "mine"))))

(provide 'contexture-repl-manage-tests)
;;; contexture-repl-manage-tests.el ends here
