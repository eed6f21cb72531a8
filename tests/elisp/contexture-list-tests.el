;;; contexture-list-tests.el --- Tests of the list of a context  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What the list shows, what its keys do, and how it follows changes.

;;; Code:

(require 'contexture-list-test-helper)
(require 'contexture-conversation-view)
(require 'contexture-mention)

(ert-deftest contexture-list-shows-type-source-lines-and-state ()
  (contexture-list-tests--with-list
    (should (equal (contexture-list-tests--column 1) '("code region" "code" "code")))
    (should (equal (contexture-list-tests--column 2)
                   '("a.el" "notes" "my-symbol (notes)")))
    (should (equal (contexture-list-tests--column 3) '("2-3" "10" "")))
    (should (equal (contexture-list-tests--column 5) '("now" "now" "now")))
    (should (equal (contexture-list-tests--column 6) '("current" "current" "current")))))

(ert-deftest contexture-list-header-names-one-layer-only-if-all-items-are-there ()
  (let ((everywhere '(:manager "*shared*" :tokens 10))
        (project '(:manager "p" :tokens 20))
        (contexture--labels (make-hash-table :test #'equal)))
    (puthash "p" "project app" contexture--labels)
    (cl-flet ((header (manager &rest items)
                (contexture-list--header manager items nil (length items) nil)))
      (should (equal (header '("*shared*" "p" "f") project project)
                     " Project app: 2 items, 40 tokens"))
      (should (equal (header '("*shared*" "p" "f") everywhere project)
                     " Everything that is sent: 2 items, 30 tokens"))
      (should (equal (header "*shared*" everywhere)
                     " The shared context: 1 item, 10 tokens")))))

(ert-deftest contexture-list-header-shows-the-size ()
  (contexture-list-tests--with-list
    (should (string-match-p "M: 3 items of at most 50, [0-9]+ tokens"
                            header-line-format))))

(ert-deftest contexture-list-shows-ages ()
  (should (equal (mapcar #'contexture-list--age '(-5 0 59 60 3599 3600 86399 86400 9999999))
                 '("now" "now" "now" "1m" "59m" "1h" "23h" "1d" "115d"))))

(ert-deftest contexture-list-sorts-numbers-as-numbers ()
  (contexture-list-tests--with-list
    (pcase-dolist (`(,column ,index) '(("Lines" 3) ("Tokens" 4)))
      (contexture-list-sort column)
      (let ((shown (mapcar #'string-to-number (contexture-list-tests--column index))))
        (should (equal shown (sort (copy-sequence shown) #'<))))
      (contexture-list-sort column)
      (let ((shown (mapcar #'string-to-number (contexture-list-tests--column index))))
        (should (equal shown (sort (copy-sequence shown) #'>)))))
    (contexture-test-user-error "No column was chosen" (contexture-list-sort ""))))

(ert-deftest contexture-list-sorts-the-youngest-first-by-age ()
  (should (equal (contexture-list--sort '((:id 1 :timestamp 10) (:id 2 :timestamp 30))
                                        '("Age"))
                 '((:id 2 :timestamp 30) (:id 1 :timestamp 10)))))

(ert-deftest contexture-list-goes-back-to-the-order-of-the-context ()
  (contexture-list-tests--with-list
    (let ((order (contexture-list-tests--column 2)))
      (contexture-list-sort "Source")
      (contexture-list-sort "Source")
      (should-not (equal order (contexture-list-tests--column 2)))
      (contexture-list-unsort)
      (should (equal order (contexture-list-tests--column 2))))))

(ert-deftest contexture-list-sort-asks-for-a-column-outside-of-one ()
  (contexture-list-tests--with-list
    (cl-letf (((symbol-function 'completing-read)
               (lambda (_prompt names &rest _)
                 (should (equal names '("Type" "Source" "Lines" "Tokens" "Age" "State")))
                 "Tokens")))
      (beginning-of-line)
      (call-interactively #'contexture-list-sort))
    (should (equal tabulated-list-sort-key '("Tokens")))))

(ert-deftest contexture-list-sorts-by-the-column-at-point ()
  (contexture-list-tests--with-list
    (dolist (column '("Type" "Source" "Lines" "Tokens" "Age" "State"))
      (contexture-list-tests--go-to 1)
      (let ((start (save-excursion (goto-char (point-min))
                                   (search-forward column (line-end-position))
                                   (backward-char)
                                   (current-column))))
        (move-to-column start)
        (call-interactively #'contexture-list-sort)
        (should (equal tabulated-list-sort-key (list column)))))))

(ert-deftest contexture-list-keeps-its-headings-above-their-columns ()
  (contexture-list-tests--with-list
    (cl-flet ((columns ()
                (save-excursion
                  (goto-char (point-min))
                  (cl-loop for name in '("Type" "Source" "Lines" "Tokens" "Age" "State")
                           collect (progn (search-forward name)
                                          (- (current-column) (length name)))))))
      (let ((before (columns)))
        (dolist (name '("Type" "Source" "Lines" "Tokens" "Age" "State"))
          (contexture-list-sort name)
          (should (equal (columns) before))
          (goto-char (point-min))
          (should (looking-at-p (concat ".*\\(" name " \\^\\|\\^ " name "\\)")))
          (should (= (length (contexture-list-tests--column 0)) 3)))))))

(ert-deftest contexture-list-visits-the-line ()
  (contexture-list-tests--with-list
    (contexture-list-visit)
    (with-current-buffer (window-buffer)
      (should (equal (buffer-name) "a.el"))
      (should (= (line-number-at-pos) 2)))))

(ert-deftest contexture-list-visits-hidden-lines ()
  (contexture-list-tests--with-list
    (with-current-buffer (find-file-noselect "a.el")
      (narrow-to-region (point-max) (point-max)))
    (contexture-list-visit)
    (with-current-buffer (window-buffer)
      (should (= (line-number-at-pos) 2)))))

(ert-deftest contexture-list-shows-the-text-of-what-is-gone ()
  (contexture-list-tests--with-list
    (delete-file "a.el")
    (contexture-list-tests--go-to 1)
    (contexture-test-message "a.el is gone" (contexture-list-visit))
    (with-current-buffer contexture-list--item-buffer
      (should (equal (buffer-string) "two\nthree\n")))))

(ert-deftest contexture-list-shows-an-items-text ()
  (contexture-list-tests--with-list
    (contexture-list-tests--go-to 2)
    (contexture-list-show)
    (with-current-buffer (llm-ert-wait-for
                             (get-buffer contexture-list--item-buffer))
      (should (equal (buffer-string) "some more words that cost more tokens"))
      (should buffer-read-only))))

(ert-deftest contexture-list-copies-an-items-text ()
  (contexture-list-tests--with-list
    (contexture-test-message "Copied 10 characters" (contexture-list-copy))
    (should (equal (car kill-ring) "two\nthree\n"))))

(ert-deftest contexture-list-names-the-keys-of-the-list ()
  (contexture-list-tests--with-list
    (global-set-key (kbd "C-c x") 'contexture-command-map)
    (unwind-protect
        (save-window-excursion
          (switch-to-buffer (current-buffer))
          (contexture-test-message "^Removed 1 item; C-/ undoes it$" (contexture-list-remove))
          (contexture-test-message "; r redoes it$" (call-interactively (key-binding [?\C-/])))
          (switch-to-buffer "*scratch*")
          (contexture-test-message "; C-c x u undoes it$"
            (let ((contexture-context "m")) (contexture-redo))))
      (global-unset-key (kbd "C-c x")))))

(ert-deftest contexture-list-removes-what-is-flagged ()
  (contexture-list-tests--with-list
    (contexture-list-flag)
    (contexture-list-flag)
    (contexture-list-flag)
    (contexture-list-tests--go-to 2)
    (contexture-list-unmark)
    (contexture-test-message "Removed 2 items; .* undoes it"
      (contexture-list-execute))
    (contexture-list-tests--until-rows 1)
    (should (equal (contexture-list-tests--column 2) '("notes")))
    (should (zerop (hash-table-count contexture-list--tags)))))

(ert-deftest contexture-list-flags-survive-an-update ()
  (contexture-list-tests--with-list
    (contexture-list-flag)
    (contexture-list-tests--add "new")
    (contexture-list-tests--until-rows 4)
    (should (= (length (contexture-list--tagged ?D)) 1))
    (contexture-list-tests--go-to 1)
    (should (looking-at "D"))))

;;;; Marks

(ert-deftest contexture-list-commands-are-for-what-is-marked ()
  (contexture-list-tests--with-list
    (contexture-list-mark)
    (contexture-list-mark)
    (should (equal (contexture-list-tests--tags) '(">" ">" " ")))
    (contexture-test-message "2 items pinned" (contexture-list-pin))
    (llm-ert-wait-for (equal (contexture-list-tests--column 0) '("*" "*" "")))
    (should (equal (contexture-list-tests--tags) '(">" ">" " ")))
    (contexture-test-message "Copied .* of 2 items" (contexture-list-copy))
    (should (equal (car kill-ring)
                   "two\nthree\nsome more words that cost more tokens"))
    (contexture-test-message "2 items unpinned" (contexture-list-pin))
    (contexture-test-message "Removed 2 items" (contexture-list-remove))
    (contexture-list-tests--until-rows 1)
    (should (equal (contexture-list-tests--tags) '(" ")))))

(ert-deftest contexture-list-pins-all-unless-all-are-pinned ()
  (contexture-list-tests--with-list
    (contexture-list-pin)
    (llm-ert-wait-for (equal (contexture-list-tests--column 0) '("*" "" "")))
    (contexture-list-mark)
    (contexture-list-mark)
    (contexture-list-pin)
    (llm-ert-wait-for (equal (contexture-list-tests--column 0) '("*" "*" "")))))

(ert-deftest contexture-list-unmarks ()
  (contexture-list-tests--with-list
    (contexture-list-mark)
    (contexture-list-flag)
    (contexture-list-mark)
    (should (equal (contexture-list-tests--tags) '(">" "D" ">")))
    (contexture-list-unmark-backward)
    (should (equal (contexture-list-tests--tags) '(">" "D" " ")))
    (contexture-list-unmark-backward)
    (should (equal (contexture-list-tests--tags) '(">" " " " ")))
    (contexture-list-tests--go-to 1)
    (let ((place (point)))
      (contexture-test-user-error "no item above" (contexture-list-unmark-backward))
      (should (= (point) place)))
    (contexture-list-tests--go-to 2)
    (contexture-list-flag)
    (contexture-test-message "2 items unmarked" (contexture-list-unmark-all))
    (should (equal (contexture-list-tests--tags) '(" " " " " ")))
    (should-not (buffer-modified-p))))

(ert-deftest contexture-list-lets-only-texts-of-files-follow ()
  (contexture-list-tests--with-list
    (contexture-list-tests--add "a.el:2: bad" :filename (expand-file-name "a.el")
                               :start-line 2 :origin :diagnostic)
    (llm-ert-wait-for (= (length contexture-list--items) 4))
    (contexture-list-tests--go-to 4)
    (contexture-test-user-error "no source to follow" (contexture-list-keep-copy))
    (contexture-test-user-error "no source to follow" (contexture-keep-copy (contexture-list--item) t))
    (contexture-list-tests--go-to 1)
    (dotimes (_ 4) (contexture-list-mark))
    (contexture-test-message "^1 item following" (contexture-list-keep-copy))
    (llm-ert-wait-for (cl-some (lambda (it) (plist-get it :live)) contexture-list--items))
    (contexture-test-message "^1 item kept" (contexture-list-keep-copy))))

(ert-deftest contexture-list-marks-stay-when-lines-move ()
  (contexture-list-tests--with-list
    (contexture-list-mark)
    (contexture-list-sort "Source")
    (contexture-list-sort "Source")
    (should (equal (contexture-list-tests--tags) '(" " " " ">")))
    (contexture-list-unsort)
    (should (equal (contexture-list-tests--tags) '(">" " " " ")))))

(ert-deftest contexture-list-commands-spare-what-is-not-shown ()
  (contexture-list-tests--with-list
    (contexture-list-mark)
    (contexture-list-tests--go-to 3)
    (contexture-list-mark)
    (contexture-list-filter-name "notes")
    (contexture-test-message "Removed 1 item" (contexture-list-remove))
    (contexture-list-unfilter)
    (contexture-list-tests--until-rows 2)
    (should (equal (contexture-list-tests--column 2) '("a.el" "notes")))
    (should (equal (contexture-list-tests--tags) '(">" " ")))))

(ert-deftest contexture-list-execute-wants-flags ()
  (contexture-list-tests--with-list
    (contexture-test-user-error "No item is flagged" (contexture-list-execute))))

(ert-deftest contexture-list-removes-and-undoes ()
  (contexture-list-tests--with-list
    (contexture-list-tests--go-to 2)
    (contexture-list-remove)
    (contexture-list-tests--until-rows 2)
    (contexture-undo)
    (contexture-list-tests--until-rows 3)
    (should (equal (contexture-list-tests--column 2)
                   '("a.el" "notes" "my-symbol (notes)")))))

(ert-deftest contexture-list-removes-the-region ()
  (contexture-list-tests--with-list
    (let ((transient-mark-mode t))
      (goto-char (point-max))
      (push-mark (contexture-list--find (plist-get (nth 1 contexture-list--items) :id))
                 t t)
      (contexture-list-remove))
    (contexture-list-tests--until-rows 1)))

;;;; Filters

(ert-deftest contexture-list-filters-by-type-state-and-name ()
  (contexture-list-tests--with-list
    (contexture-list-filter-type "region")
    (should (equal (contexture-list-tests--column 2) '("a.el")))
    (should (string-match-p "3 items .*; 1 shown: type region" header-line-format))
    (contexture-list-filter-type "code")
    (should (= (length (contexture-list-tests--column 2)) 3))
    (contexture-list-filter-name "NOTES\\'")
    (should (equal (contexture-list-tests--column 2) nil))
    (should (string-match-p "no item passes the filters; / / removes" (buffer-string)))
    (contexture-list-filter-name "^notes")
    (should (equal (contexture-list-tests--column 2) '("notes")))
    (should (string-match-p "1 shown: type code, name \\^notes" header-line-format))
    (contexture-list-filter-name "")
    (contexture-list-filter-state "changed")
    (should (equal (contexture-list-tests--column 2) nil))
    (contexture-list-unfilter)
    (should (= (length (contexture-list-tests--column 2)) 3))
    (should-not (string-match-p "shown" header-line-format))))

(ert-deftest contexture-list-filters-by-contents ()
  (contexture-list-tests--with-list
    (contexture-list-filter-contents "WORDS\\|three")
    (llm-ert-wait-for (not contexture-list--updating))
    (should (equal (contexture-list-tests--column 2) '("a.el")))
    (contexture-list-filter-contents "words\\|three")
    (contexture-list-tests--until-rows 2)
    (contexture-list-tests--add "more words")
    (contexture-list-tests--until-rows 3)))

(ert-deftest contexture-list-filters-offer-what-there-is ()
  (contexture-list-tests--with-list
    (let (offered)
      (cl-letf (((symbol-function 'completing-read)
                 (lambda (_prompt values &rest _) (setq offered values) "")))
        (call-interactively #'contexture-list-filter-type)
        (should (equal offered '("code" "region")))
        (call-interactively #'contexture-list-filter-state)
        (should (equal offered '("current")))))
    (contexture-test-user-error "not a regular expression" (contexture-list-filter-name "\\("))))

;;;; Drawing

(ert-deftest contexture-list-draws-only-what-is-different ()
  (contexture-list-tests--with-list
    (let ((lines (mapcar #'cdr contexture-list--rows))
          drawn)
      (add-hook 'after-change-functions
                (lambda (beg end _) (push (count-lines beg end) drawn)) nil t)
      (contexture-list-tests--add "new")
      (contexture-list-tests--until-rows 4)
      (should (equal (seq-take (mapcar #'cdr contexture-list--rows) 3) lines))
      (should (equal (apply #'+ drawn) 1)))))

(ert-deftest contexture-list-makes-lines-only-of-what-is-different ()
  (contexture-list-tests--with-list
    (let (made)
      (cl-letf* ((line (symbol-function 'contexture-list--line))
                 ((symbol-function 'contexture-list--line)
                  (lambda (row &rest arguments)
                    (push (car row) made)
                    (apply line row arguments)))
                 (id (plist-get (nth 1 contexture-list--items) :id)))
        (contexture-request 'update-items (list :manager "m" :id id :pinned t))
        (llm-ert-wait-for (equal (contexture-list-tests--column 0) '("" "*" "")))
        (should (member (delete-dups made) ; the minute may have ended
                        (list (list id)
                              (mapcar (lambda (item) (plist-get item :id))
                                      (reverse contexture-list--items)))))))))

(ert-deftest contexture-list-keeps-what-its-window-shows ()
  (contexture-test-with-server
    (dotimes (n 50) (contexture-list-tests--add (number-to-string n)))
    (contexture-list-tests--open
     (lambda ()
       (let ((top (plist-get (nth 20 contexture-list--items) :id))
             (id (plist-get (nth 22 contexture-list--items) :id)))
         (set-window-start nil (contexture-list--find top))
         (set-window-point nil (contexture-list--find id))
         (contexture-request 'remove-items
                             (list :manager "m" :ids
                                   (list (plist-get (nth 3 contexture-list--items) :id)
                                         (plist-get (nth 40 contexture-list--items) :id))))
         (contexture-list-tests--until-rows 48)
         (should (equal (tabulated-list-get-id (window-start)) top))
         (should (equal (tabulated-list-get-id (window-point)) id)))))))

(ert-deftest contexture-list-says-that-it-is-empty ()
  (contexture-test-with-server
    (contexture-list "m")
    (with-current-buffer contexture-list-buffer
      (llm-ert-wait-for (string-match-p "no items yet" (buffer-string)))
      (contexture-list-tests--add "x")
      (contexture-list-tests--until-rows 1)
      (should-not (string-match-p "no items yet" (buffer-string))))))

(ert-deftest contexture-list-pins-and-unpins ()
  (contexture-list-tests--with-list
    (contexture-list-pin)
    (llm-ert-wait-for (equal (contexture-list-tests--column 0) '("*" "" "")))
    (contexture-list-tests--go-to 1)
    (contexture-list-pin)
    (llm-ert-wait-for (equal (contexture-list-tests--column 0) '("" "" "")))))

(ert-deftest contexture-list-commands-want-an-item ()
  (contexture-list-tests--with-list
    (goto-char (point-max))
    (dolist (command '(contexture-list-visit contexture-list-show contexture-list-pin
                       contexture-list-flag contexture-list-remove
                       contexture-list-copy))
      (contexture-test-user-error "no item here" (call-interactively command)))))

(ert-deftest contexture-list-follows-what-another-emacs-does ()
  (contexture-test-with-state
    (let (other)
      (contexture-list-tests--add "mine")
      (contexture-list-tests--open
       (lambda ()
         (contexture-list-tests--until-rows 1)
         (contexture-test-as-other-emacs other
           (contexture-list-tests--add "theirs"))
         (contexture-list-tests--until-rows 2)))
      (contexture-test-as-other-emacs other (contexture-disconnect)))))

(ert-deftest contexture-list-follows-a-new-server ()
  (contexture-test-with-state
    (contexture-list-tests--add "kept")
    (contexture-list-tests--open
     (lambda ()
       (contexture-ert-kill-server t)
       (llm-ert-wait-for (not (contexture-running-p)))
       (llm-ert-wait-for (contexture-running-p))
       (contexture-list-tests--add "new")
       (contexture-list-tests--until-rows 2)))))

(ert-deftest contexture-list-keeps-point-on-its-item ()
  (contexture-list-tests--with-list
    (contexture-list-tests--go-to 3)
    (let ((id (tabulated-list-get-id))
          (window (split-window)))
      (set-window-buffer window (current-buffer))
      (set-window-point window (contexture-list--find
                                (plist-get (nth 1 contexture-list--items) :id)))
      (contexture-request 'remove-items
                          (list :manager "m" :ids
                                (list (plist-get (car contexture-list--items) :id))))
      (contexture-list-tests--until-rows 2)
      (should (equal (tabulated-list-get-id) id))
      (should (equal (tabulated-list-get-id (window-point window))
                     (plist-get (car contexture-list--items) :id))))))

(ert-deftest contexture-list-moves-to-a-neighbour-of-a-removed-item ()
  (contexture-list-tests--with-list
    (contexture-list-tests--go-to 3)
    (contexture-list-remove)
    (contexture-list-tests--until-rows 2)
    (should (equal (tabulated-list-get-id)
                   (plist-get (nth 1 contexture-list--items) :id)))))

(ert-deftest contexture-list-shows-stale-and-missing-items ()
  (contexture-list-tests--with-list
    (write-region "something\nelse\n" nil "a.el" nil 'silent)
    (contexture-list-refresh)
    (llm-ert-wait-for
        (equal (car (contexture-list-tests--column 6)) "changed"))
    (contexture-list-tests--go-to 1)
    (should (eq (get-text-property 0 'face (aref (tabulated-list-get-entry) 2))
                'contexture-list-changed))
    (delete-file "a.el")
    (contexture-list-refresh)
    (llm-ert-wait-for
        (equal (car (contexture-list-tests--column 6)) "gone"))))

(ert-deftest contexture-list-shows-unsaved-and-remote-items ()
  (contexture-test-with-server
    (contexture-list-tests--add "x" :filename (contexture-test-file "a.el" "y")
                                :modified t)
    (contexture-list-tests--add "x" :filename "/ssh:example.org:/a.el")
    (contexture-list-tests--open
     (lambda ()
       (should (equal (contexture-list-tests--column 6) '("unsaved" "remote")))))))

(ert-deftest contexture-list-sees-that-text-was-saved ()
  (contexture-test-with-server
    (let ((file (contexture-test-file "a.el" "y")))
      (contexture-list-tests--add "x\n" :filename file :modified t)
      (contexture-list-tests--open
       (lambda ()
         (should (equal (contexture-list-tests--column 6) '("unsaved")))
         (contexture-test-file "a.el" "x")
         (set-file-times file (time-add nil 60))
         (contexture-list-refresh)
         (llm-ert-wait-for
             (equal (contexture-list-tests--column 6) '("current"))))))))

(ert-deftest contexture-list-takes-saved-text-for-saved ()
  (contexture-test-with-server
    (let ((file (contexture-test-file "a.el" "x")))
      (contexture-list-tests--add "x" :filename file :modified t)
      (set-file-times file (time-add nil 60))
      (contexture-list-tests--open
       (lambda ()
         (should (equal (contexture-list-tests--column 6) '("current"))))))))

(ert-deftest contexture-preview-says-why-it-counts-more-than-the-list ()
  (contexture-list-tests--with-list
    (let ((listed (and (string-match ", \\([0-9]+\\) tokens" header-line-format)
                       (string-to-number (match-string 1 header-line-format)))))
      (contexture-preview contexture-context)
      (with-current-buffer contexture-preview-buffer
        (should (string-match "\\([0-9]+\\) tokens with headings\\'" header-line-format))
        (should (< listed (string-to-number (match-string 1 header-line-format))))))))

(ert-deftest contexture-preview-follows-the-context ()
  (contexture-test-with-server
    (contexture-list-tests--add "one")
    (contexture-preview "m")
    (unwind-protect
        (progn
          (contexture-request 'add-context '(:manager "m" :content "two"))
          (llm-ert-wait-for
              (with-current-buffer contexture-preview-buffer
                (string-search "two" (buffer-string)))))
      (kill-buffer contexture-preview-buffer))
    (should-not contexture-notification-functions)))

(ert-deftest contexture-symbol-names-are-found-behind-imenus-labels ()
  (should (equal (contexture-symbol--label-name "helper (def)" nil) "helper"))
  (should (equal (contexture-symbol--label-name "Big (class)..." nil) "Big"))
  (should (equal (contexture-symbol--label-name "*class definition*" "Big") "Big"))
  (should (equal (contexture-symbol--label-name "plain-name" nil) "plain-name")))

(ert-deftest contexture-list-fits-a-terminal ()
  (dolist (width '(66 80 110 200))
    (let* ((columns (contexture-list--format width))
           (row (contexture-list--row
                 '(:id "ctx-1" :type :code :state :missing :tokens 12345
                   :metadata (:filename "/a/very/long/name/of/a/file/that/does/not/fit.el"
                              :start-line 10000 :end-line 20000 :origin :region))
                 9999999)))
      (dolist (line (list (contexture-list--heading columns '("State"))
                          (contexture-list--line
                           row columns (contexture-list--template columns))))
        (should (< (string-width (string-trim-right line)) width))))))

(ert-deftest contexture-list-cuts-a-source-where-it-tells-least ()
  (should (equal (contexture-list--cut-source "lib/a.el" 8) "lib/a.el"))
  (should (equal (contexture-list--cut-source "contrib/lib/tools.el" 12) "…ib/tools.el"))
  (should (equal (contexture-list--cut-source "漢字/漢字.el" 8) "…漢字.el"))
  (should (equal (contexture-list--cut-source "total-of (lib/a.el)" 12) "total-of (l…"))
  (should (equal (contexture-list--cut-source "some buffer" 8) "some bu…")))

(ert-deftest contexture-list-begins-at-the-first-item ()
  (contexture-list-tests--with-list
    (kill-buffer)
    (contexture-list "m")
    (with-current-buffer contexture-list-buffer
      (llm-ert-wait-for contexture-list--items)
      (should (equal (contexture-list--item) (car contexture-list--items)))
      (should (= (window-point (get-buffer-window)) (point)))
      (goto-char (point-max))
      (contexture-list--update)
      (llm-ert-wait-for (not contexture-list--updating))
      (should (eobp)))))

(ert-deftest contexture-list-has-room-for-the-dates-of-states ()
  (pcase-dolist (`(,width . ,sent) `((80) (80 . ,(make-hash-table :test #'equal))
                                     (96 . ,(make-hash-table :test #'equal))
                                     (200 . ,(make-hash-table :test #'equal))))
    (pcase-dolist (`(,word ,state ,file) '(("copy" :fresh "/a/long/name/of/a/file.el")
                                           ("changed" :stale "/a/long/name/of/a/file.el")
                                           ("gone" :missing "/a/long/name/of/a/file.el")
                                           ("remote" :fresh "/ssh:there:/a/name/of/a/file.el")))
      (let* ((item `(:id "ctx-1" :type :code :state ,state :tokens 12345 :as-of 1893456000
                     :metadata (:filename ,file :start-line 10000 :end-line 20000
                                :origin :region)))
             (columns (contexture-list--format width (contexture-list--state-width item)
                                               sent))
             (line (contexture-list--line (contexture-list--row item 9999999 sent) columns
                                          (contexture-list--template columns)))
             (place (string-match word line))
             (shown (get-text-property place 'display line)))
        (should (contexture-list--dated-p item))
        (should (string-prefix-p (concat word " 20") shown))
        (should (string-match-p (concat "10000-?2?0*" (regexp-quote (truncate-string-ellipsis)))
                                line))
        (should (< (+ place (string-width shown)) width)))))
  (dolist (item '((:as-of 1893456000 :live t :state :fresh :metadata (:origin :region))
                  (:state :stale :metadata (:origin :region))))
    (should-not (contexture-list--dated-p item))))

(ert-deftest contexture-list-calls-nothing-current-that-does-not-follow-its-source ()
  ;; The file of an error may have changed since, as the model is told by the date.
  (dolist (origin '(:region :defun :symbol :file :buffer :tree :kill :diagnostic :compilation
                            :diff :listing :repl))
    (let ((item `(:id "ctx-1" :type :error :state :fresh :tokens 1 :as-of 1893456000
                  :metadata (:filename "/a/b.c" :start-line 1 :end-line 1 :origin ,origin))))
      (should (equal "copy" (contexture-list--state item)))
      ;; A file that changes under unsaved edits changes no copy.
      (let ((contexture--conflicts '(("/a/b.c"))))
        (should (equal "copy" (contexture-list--state item))))
      (should (contexture-list--dated-p item)))))

(ert-deftest contexture-list-refresh-finds-text-that-moved ()
  (contexture-list-tests--with-list
    (write-region "new first line\none\ntwo\nthree\nfour\n" nil "a.el" nil 'silent)
    (contexture-list-refresh)
    (llm-ert-wait-for
        (equal (contexture-list-tests--column 3) '("3-4" "10" "")))))

(ert-deftest contexture-list-leaves-nothing-behind ()
  (contexture-list-tests--with-list
    (should contexture-notification-functions)
    (kill-buffer contexture-list-buffer)
    (should-not contexture-notification-functions)
    (should-not contexture-connected-hook)))

(ert-deftest contexture-list-opens-for-the-buffer-it-is-called-in ()
  (contexture-test-with-server
    (contexture-test-visiting (contexture-test-file "b.el" "(one)")
      (contexture-add-buffer)
      (call-interactively #'contexture-list)
      (with-current-buffer contexture-list-buffer
        (contexture-list-tests--until-rows 1)
        (should (equal contexture-context "b.el")))
      (with-temp-buffer
        (call-interactively #'contexture-list))
      (with-current-buffer contexture-list-buffer
        (should (equal contexture-context "b.el"))))))

(ert-deftest contexture-list-shows-a-thousand-items ()
  (contexture-test-with-server
    (contexture-request 'configure-manager '(:manager "m" :max-items 1000))
    (dotimes (n 1000)
      (contexture-request-async 'add-context
                                (list :manager "m" :content (number-to-string n)
                                      :brief t)))
    (contexture-request 'ping)
    (contexture-list-tests--open
     (lambda ()
       (contexture-list-tests--until-rows 1000)
       (contexture-list-tests--go-to 500)
       (contexture-list-remove)
       (contexture-list-tests--until-rows 999)))))

(ert-deftest contexture-list-odd-code-is-shown-without-faces ()
  (pcase-dolist (`(,code . ,drawn)
                 `((,(make-string 20000 ?\() . nil)
                   (,(apply #'concat (make-list 2000 "Map<A,")) . nil)
                   (,(make-string 20000 ?x) . nil)
                   (,(concat "class A { int f(Map<A, B<C>> m) { return 1 < 2 ? 3 : 4; } }\n"
                             (apply #'concat (make-list 120 "boolean b = 1 < 2;\n")))
                    . t)))
    (with-temp-buffer
      (contexture--enter-mode 'java-mode code)
      (font-lock-set-defaults)
      (contexture--draw-code (point-min) (point-max))
      (should (equal (buffer-string) code))
      (should (eq drawn (and (text-property-not-all (point-min) (point-max) 'face nil) t))))))

;; Font-lock may leave point elsewhere.
(ert-deftest contexture-list-draws-each-part-of-code-once ()
  (let ((parts 0))
    (with-temp-buffer
      (emacs-lisp-mode)
      (contexture--insert-code "(car x)\n")
      (cl-letf (((symbol-function 'font-lock-fontify-region)
                 (lambda (beg &rest _) (cl-incf parts) (goto-char beg))))
        (contexture--draw-code (point-min) (point-max))))
    (should (equal parts 1))))

(ert-deftest contexture-preview-renders-twice-for-many-changes ()
  (contexture-test-with-server
    (contexture-request 'add-item '(:manager "many" :content "first"))
    (contexture-preview "many")
    (let ((asked 0) (async (symbol-function 'contexture-request-async)) (buffer (current-buffer)))
      (cl-letf (((symbol-function 'contexture-request-async)
                 (lambda (method &rest arguments)
                   (when (eq method 'render-items) (cl-incf asked))
                   (apply async method arguments))))
        (dotimes (number 5)
          (contexture-preview--changed 'context-changed '(:manager "many")))
        (should (= asked 1))
        (contexture-request 'add-item '(:manager "many" :content "the last"))
        (llm-ert-wait-for (with-current-buffer buffer
                            (and (null contexture-preview--updating)
                                 (string-search "the last" (buffer-string)))))
        (should (<= 2 asked 3))
        ;; Not even an error leaves it as it is.
        (cl-letf (((symbol-function 'contexture--render-params) (lambda (_) '(:manager 1))))
          (contexture-test-message "manager"
            (contexture-preview--changed 'context-changed '(:manager "many"))
            (llm-ert-wait-for (null (buffer-local-value 'contexture-preview--updating buffer)))))))
    (kill-buffer contexture-preview-buffer)))

(provide 'contexture-list-tests)
(ert-deftest contexture-list-shows-items-with-any-metadata ()
  "A client can give an item whatever the server takes."
  (contexture-test-with-server
    (save-window-excursion
      (let ((count 0))
        (contexture-request 'configure-manager '(:manager "m" :max-items 1000))
        (dolist (key '(:filename :buffer :symbol :title :project :language :mode :origin :tool
                       :start-line :end-line :stale :modified :symbol-kind))
          (dolist (value '("x" 5 -1 (1 2) (:a 1) :foo "a\nb" 99999999999 1.5 [1 2] "%b" t))
            (when (ignore-errors
                    (contexture-request 'add-item (list :manager "m" :content (format "%S %S" key value)
                                                        :metadata (list key value))))
              (cl-incf count))))
        (should (> count 80))
        (let ((items (contexture-request 'list-items '(:manager "m"))))
          (contexture-sets--name-items items)
          (contexture-mention--name-items "/" items)
          (dolist (item items)
            (contexture-list--row item 0)
            (contexture-sets--here-p item)
            (contexture-list-item--display item)
            (contexture-conversation--item-name item)
            (contexture--item-state `(:state :stale :timestamp 0
                                       :metadata ,(plist-get item :metadata))))
          (contexture-list "m")
          (llm-ert-wait-for (buffer-local-value 'contexture-list--loaded
                                                (get-buffer contexture-list-buffer)))
          (with-current-buffer contexture-list-buffer
            (should (= (length items) (length contexture-list--rows)))))))))

;;; contexture-list-tests.el ends here
